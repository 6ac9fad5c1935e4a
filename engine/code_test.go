//go:build linux

package engine_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestCodeValidate(t *testing.T) {
	broken := new(broker.Set)
	broker.Add(broken, "no good name", "", func(context.Context, struct{}) (int, error) { return 0, nil })
	unwanted := errors.New("unwanted")
	for _, c := range []struct {
		name  string
		code  engine.Code
		tools *broker.Set
		want  error
	}{
		{"good", engine.Code{Language: "python", Vars: map[string]any{"x": 1}}, testbox.Adders(), nil},
		{"unknown language", engine.Code{Language: "cobol"}, nil, engine.ErrInvalid},
		{"no language", engine.Code{}, nil, engine.ErrInvalid},
		{"a bad name", engine.Code{Language: "sh", Vars: map[string]any{"1x": 1}}, nil, engine.ErrInvalid},
		{"no JSON", engine.Code{Language: "sh", Vars: map[string]any{"x": math.Inf(1)}}, nil, engine.ErrInvalid},
		{"a negative time", engine.Code{Language: "sh", Wall: -1}, nil, engine.ErrInvalid},
		{"a bad tool", engine.Code{Language: "sh"}, broken, engine.ErrInvalid},
		{"refused", engine.Code{Language: "sh", Source: "x", Check: func(string) error { return unwanted }}, nil, unwanted},
	} {
		if err := c.code.Validate(c.tools); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want == nil {
			continue
		}
		if _, err := engine.RunCode(t.Context(), engine.Spec{}, c.code, c.tools); !errors.Is(err, c.want) {
			t.Errorf("%s: RunCode: %v", c.name, err)
		}
	}
}

// Each language takes variables, arguments, tools and input, and returns a value.
func TestRunCode(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Program("python3"), testenv.Program("bash"))
	sources := map[string]string{
		"python": `import sys; print(sys.argv[1], sys.stdin.read()); add(a=n, b=1)`,
		"sh":     `echo "$1" "$(cat)"; result "$(add "{\"a\": $n, \"b\": 1}")"`,
		"bash":   `echo "$1" "$(cat)"; result "$(add "{\"a\": $n, \"b\": 1}")"`,
		"node":   `console.log(process.argv[2], require("fs").readFileSync(0, "utf8")); await add({a: n, b: 1})`,
	}
	if got := strings.Join(engine.Languages(), " "); got != "python node sh bash" {
		t.Errorf("languages %s", got)
	}
	for _, language := range engine.Languages() {
		t.Run(language, func(t *testing.T) {
			if language == "node" {
				testenv.Need(t, testenv.Program("node"))
			}
			var out strings.Builder
			res, err := engine.RunCode(testbox.Within(t, time.Minute), engine.Spec{}, engine.Code{
				Language: language, Source: sources[language], Vars: map[string]any{"n": 41}, Args: []string{"arg"},
				Stdin: strings.NewReader("input"), Stdout: &out,
			}, testbox.Adders())
			if err != nil {
				t.Fatal(err)
			}
			var sum int
			if err := res.Decode(&sum); err != nil || sum != 42 || out.String() != "arg input\n" {
				t.Errorf("%d, %v; stdout %q, stderr %s", sum, err, &out, res.Stderr)
			}
			if usage := res.Code.Tools["add"]; res.Code.Run == "" || usage.Calls != 1 || len(res.Code.ToolCalls) != 1 {
				t.Errorf("run %q, tools %+v", res.Code.Run, res.Code.Tools)
			}
		})
	}
}

func TestResultErr(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Program("python3"))
	box := testbox.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{ToolCalls: 1}})
	for _, c := range []struct {
		name, source string
		outcome      engine.Outcome
		says         string // of Err; "": nil
	}{
		{"a value", "[1, 2]", engine.OutcomeOK, ""},
		{"no value", "x = 1", engine.OutcomeOK, ""},
		{"an exception", "{}['k']", engine.OutcomeExit, "KeyError: 'k'"},
		{"an exit", "import os; os._exit(3)", engine.OutcomeExit, "command: exit status 3"},
		{"a signal", "import os; os.kill(os.getpid(), 15)", engine.OutcomeSignal, "command: terminated"},
		{"too long", "import time; time.sleep(60)", engine.OutcomeTimeout, "command: timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := engine.Code{Language: "python", Source: c.source}
			if c.outcome == engine.OutcomeTimeout {
				code.Wall = 500 * time.Millisecond
			}
			res, err := box.RunCode(testbox.Within(t, time.Minute), code, testbox.Adders())
			if err != nil {
				t.Fatal(err)
			}
			err = res.Err()
			if res.Outcome != c.outcome || (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
				t.Errorf("%s, %v; want %s, %s", res.Outcome, err, c.outcome, c.says)
			}
			var list []int
			switch derr := res.Decode(&list); {
			case c.says != "":
				if derr == nil || derr.Error() != c.says {
					t.Errorf("Decode: %v", derr)
				}
			case c.name == "no value":
				if !errors.Is(derr, engine.ErrInvalid) {
					t.Errorf("Decode: %v", derr)
				}
			case derr != nil || len(list) != 2:
				t.Errorf("Decode: %v, %v", list, derr)
			}
			var wrong struct{ X int }
			if err == nil && res.Decode(&wrong) == nil {
				t.Error("a list was decoded into a struct")
			}
			var exception *broker.CodeError
			var outcome *engine.OutcomeError
			if c.name == "an exception" && (!errors.As(err, &exception) || exception.Type != "KeyError") {
				t.Errorf("%#v is no exception", err)
			}
			if c.name == "an exit" && (!errors.As(err, &outcome) || outcome.Result != res) {
				t.Errorf("%#v has no Result", err)
			}
		})
	}
	// More calls than are allowed is an outcome of its own.
	twice := engine.Code{Language: "python", Source: "add(a=1, b=1); add(a=1, b=1)"}
	res, err := box.RunCode(testbox.Within(t, time.Minute), twice, testbox.Adders())
	if err != nil {
		t.Fatal(err)
	}
	testbox.Ends(engine.OutcomeToolCalls, 1, string(engine.LimitToolCalls)).Check(t, res)
}

// A session ends with its interpreter, with its time and with its context, and
// refuses further runs.
func TestSessionEnds(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Program("python3"))
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	canceled, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		name, source string
		ctx          context.Context
		wall         time.Duration
		outcome      engine.Outcome
	}{
		{"os._exit", "import os; os._exit(7)", t.Context(), 0, engine.OutcomeExit},
		{"a signal", "import os; os.kill(os.getpid(), 15)", t.Context(), 0, engine.OutcomeSignal},
		{"time", "while True: pass", t.Context(), 500 * time.Millisecond, engine.OutcomeTimeout},
		{"its context", "cancel()\nwhile True: pass", canceled, 0, engine.OutcomeCanceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := box.Session("python")
			defer session.Close()
			if _, err := session.RunCode(t.Context(), engine.Code{Source: "x = 1"}, nil); err != nil {
				t.Fatal(err)
			}
			tools := new(broker.Set)
			broker.Add(tools, "cancel", "", func(context.Context, struct{}) (int, error) { cancel(); return 0, nil })
			res, err := session.RunCode(c.ctx, engine.Code{Source: c.source, Wall: c.wall}, tools)
			if err != nil || res.Outcome != c.outcome {
				t.Errorf("%+v, %v; want %s", res, err, c.outcome)
			}
			if _, err := session.RunCode(t.Context(), engine.Code{Source: "x"}, nil); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("a run after the end: %v", err)
			}
		})
	}
	if out := testbox.Output(t, box, "echo alive"); out != "alive" {
		t.Errorf("the sandbox says %q", out)
	}
}

// A session is of one language that can have one, and takes neither an environment
// nor input.
func TestSessionRefuses(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Program("python3"))
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	session := box.Session("python", "A=b")
	for name, code := range map[string]engine.Code{
		"another language": {Language: "node", Source: "1"},
		"an environment":   {Source: "1", ExtraEnv: []string{"A=b"}},
		"input":            {Source: "1", Stdin: strings.NewReader("")},
	} {
		if _, err := session.RunCode(t.Context(), code, nil); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := box.Session("sh").RunCode(t.Context(), engine.Code{Source: "true"}, nil)
	if !errors.Is(err, engine.ErrUnsupported) {
		t.Errorf("a session in sh: %v", err)
	}
	res, err := session.RunCode(t.Context(), engine.Code{Source: "import os; print(os.environ['A']); exit(3)"}, nil)
	if err != nil || res.ExitCode != 3 || string(res.Stdout) != "b\n" {
		t.Errorf("%+v, %v", res, err)
	}
	for range 2 {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDiagnose(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	list := engine.Diagnose(t.Context())
	if len(list) < 3 {
		t.Fatalf("got %+v", list)
	}
	for _, f := range list {
		if f.What == "" || f.Detail == "" {
			t.Errorf("a finding that says nothing: %+v", f)
		}
	}
	if last := list[len(list)-1]; last.What != "sandbox" || !last.OK {
		t.Errorf("got %+v", last)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if list := engine.Diagnose(canceled); list[len(list)-1].OK {
		t.Errorf("canceled: %+v", list)
	}
}
