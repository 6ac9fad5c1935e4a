//go:build linux

package conformance_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// piece is code to run in a sandbox, and how it must end.
type piece struct {
	name    string // what others call it, and what it shows
	lang    string // "" is python
	source  string
	vars    map[string]any
	limits  engine.Limits
	stdout  string
	value   string         // as JSON; "" is any
	outcome engine.Outcome // "" is OK
	failed  string         // the type of the exception that ended it
	stderr  string         // has this in it
}

func (p piece) code() engine.Code {
	c := engine.Code{Language: p.lang, Source: p.source, Vars: p.vars}
	if c.Language == "" {
		c.Language = "python"
	}
	return c
}

func (p piece) run(t *testing.T, eng *engine.Engine, tools *broker.Set) *engine.Result {
	t.Helper()
	return p.runAt(t, testbox.Namespaces, eng, tools)
}

func (p piece) runAt(t *testing.T, l testbox.Level, eng *engine.Engine, tools *broker.Set) *engine.Result {
	t.Helper()
	if p.lang == "node" {
		testenv.Need(t, testenv.Program("node"))
	}
	res, err := eng.RunCode(testbox.Within(t, time.Minute), l.Accept(engine.Spec{Limits: p.limits}), p.code(), tools)
	if err != nil {
		t.Fatal(err)
	}
	want := p.outcome
	if want == "" {
		want = engine.OutcomeOK
	}
	failed := ""
	if res.Code.Error != nil {
		failed = res.Code.Error.Type
	}
	if res.Outcome != want || failed != p.failed || string(res.Stdout) != p.stdout ||
		p.value != "" && string(res.Code.Value) != p.value || !strings.Contains(string(res.Stderr), p.stderr) {
		t.Errorf("%s, value %.300s, error %+v, stdout %.300q, stderr %.500q; "+
			"want %s, value %s, error %q, stdout %.300q, stderr with %q",
			res.Outcome, res.Code.Value, res.Code.Error, res.Stdout, res.Stderr, want, p.value, p.failed, p.stdout, p.stderr)
	}
	return res
}

const (
	short  = 500 * time.Millisecond // for code that would never end
	enough = 2 * time.Second        // and that does something before
)

// Without tools: how a plain interpreter behaves and ends.
func TestCode(t *testing.T) {
	eng := testbox.Open(t)
	for _, p := range []piece{
		{name: "codecell: code may be anything where nothing checks it",
			source: "import os\nos.system('true'), eval('1 + 1'), open('/etc/passwd').read()[:0]", value: `[0,2,""]`},
		{name: "codecell: print", source: "print('hello')", stdout: "hello\n"},
		{name: "codecell: several lines", source: "a = 10\nb = 20\nprint(a + b)", stdout: "30\n"},
		{name: "codecell: an import", source: "import json\nprint(json.dumps({'a': [1]}))", stdout: "{\"a\": [1]}\n"},
		{name: "codecell: another import", source: "import math\nprint(math.sqrt(16))", stdout: "4.0\n"},
		{name: "codecell: an exception", source: "1/0", outcome: engine.OutcomeExit, failed: "ZeroDivisionError",
			stderr: "ZeroDivisionError: division by zero"},
		{name: "codecell: what is no code", source: "def", outcome: engine.OutcomeExit, failed: "SyntaxError",
			stderr: "SyntaxError"},
		{name: "codecell: a timeout", source: "import time\ntime.sleep(10)", limits: engine.Limits{Wall: short},
			outcome: engine.OutcomeTimeout},
		{name: "codecell: functions and loops", source: "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n" +
			"        a, b = b, a + b\n    return a\nprint(fib(10))", stdout: "55\n"},
		{name: "codecell, chuk: a loop without end", source: "while True: pass", limits: engine.Limits{Wall: short},
			outcome: engine.OutcomeTimeout},
		{name: "codecell: the value without any tools", source: "print('x')\n6 * 7", stdout: "x\n", value: "42"},
		{name: "codecell: a sum", source: "print(1 + 2)", stdout: "3\n"},
		{name: "codecell: bash", lang: "bash", source: "echo hello", stdout: "hello\n"},
		{name: "codecell: bash, two commands", lang: "bash", source: "echo a && echo b", stdout: "a\nb\n"},
		{name: "codecell: bash, a timeout", lang: "bash", source: "echo a; sleep 10", limits: engine.Limits{Wall: enough},
			stdout: "a\n", outcome: engine.OutcomeTimeout},
		{name: "codecell: the language is that of the interpreter", source: "import sys\n'python' in sys.executable",
			value: "true"},
		{name: "codecell: bash is bash", lang: "bash", source: "echo ${BASH_VERSION:+bash}; exit 5", stdout: "bash\n",
			outcome: engine.OutcomeExit},
		{name: "output before an exit", source: "import sys\nprint('said')\nsys.exit(3)", stdout: "said\n",
			outcome: engine.OutcomeExit},
		{name: "codecell: node, a timeout", lang: "node", source: "console.log('on'); for (;;);",
			limits: engine.Limits{Wall: enough}, stdout: "on\n", outcome: engine.OutcomeTimeout},
		{name: "codecell: node, an exception", lang: "node", source: "null.x", outcome: engine.OutcomeExit, failed: "TypeError",
			stderr: "Cannot read properties of null"},
		{name: "codecell: node, what is no code", lang: "node", source: "const = 1", outcome: engine.OutcomeExit,
			failed: "SyntaxError", stderr: "SyntaxError"},
		{name: "node, output before an exit", lang: "node", source: "console.log('said'); process.exit(3)", stdout: "said\n",
			outcome: engine.OutcomeExit},
		{name: "node, a string of many lines", lang: "node", source: "{\n  const s = `a\n    b\n  c`\n  return s\n}",
			value: `"a\n    b\n  c"`},
		{name: "a string of many lines", source: "if True:\n    s = \"\"\"a\n    b\n  c\"\"\"\n    return s",
			value: `"a\n    b\n  c"`},
		{name: "chuk: variables, and a return", source: "return base * 2", vars: map[string]any{"base": 21}, value: "42"},
		{name: "chuk: an exception in what returns", source: "return 1/0", outcome: engine.OutcomeExit, failed: "ZeroDivisionError",
			stderr: "division by zero"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t, eng, nil)
		})
	}
	t.Run("codecell: no code at all", func(t *testing.T) {
		res := piece{source: ""}.run(t, eng, nil)
		if len(res.Stdout)+len(res.Stderr) > 0 || res.ExitCode != 0 || res.Signal != 0 || res.Streams.Detached ||
			res.Code.Value != nil && string(res.Code.Value) != "null" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("codecell, chuk: much output", func(t *testing.T) {
		for _, limit := range []engine.Bytes{64 * engine.KiB, 256} {
			res := piece{source: "print('x' * 500_000)", limits: engine.Limits{Output: limit},
				stdout: strings.Repeat("x", int(limit))}.run(t, eng, nil)
			if !res.Streams.TruncatedStdout || res.Streams.TruncatedStderr {
				t.Errorf("truncated %v, %v", res.Streams.TruncatedStdout, res.Streams.TruncatedStderr)
			}
		}
	})
	t.Run("codecell: a segmentation fault", func(t *testing.T) {
		res := piece{source: "import ctypes\nctypes.string_at(0)", outcome: engine.OutcomeSignal}.run(t, eng, nil)
		if res.ExitCode != 139 {
			t.Errorf("exit code %d", res.ExitCode)
		}
	})
	t.Run("codecell: languages", func(t *testing.T) {
		if got := strings.Join(engine.Languages(), " "); got != "python node sh bash" {
			t.Errorf("languages are %s", got)
		}
		_, err := eng.RunCode(t.Context(), engine.Spec{}, engine.Code{Language: "cobol"}, nil)
		if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "python, node, sh, bash") {
			t.Errorf("another: %v", err)
		}
	})
	t.Run("codecell: the exception stands beside what was printed", func(t *testing.T) {
		if res := (piece{source: "1"}).run(t, eng, nil); res.Code.Error != nil {
			t.Errorf("%+v", res.Code.Error)
		}
		res := piece{source: "import sys\nprint('odd', file=sys.stderr)\n\nraise KeyError('k')", outcome: engine.OutcomeExit,
			failed: "KeyError", stderr: "odd\n"}.run(t, eng, nil)
		if e := res.Code.Error; e == nil || e.Message != "'k'" || !strings.Contains(e.Traceback, `File "<code>", line 4`) ||
			strings.Contains(e.Traceback, "odd") {
			t.Errorf("%+v", e)
		}
	})
}

// Code that its check refuses is not started.
func TestCheck(t *testing.T) {
	t.Run("codecell: what a check refuses does not run", func(t *testing.T) {
		eng := testbox.Open(t)
		refused := errors.New("import not allowed: 'os'")
		c := engine.Code{Language: "python", Source: "import os", Check: func(source string) error {
			if source != "import os" {
				t.Errorf("asked about %q", source)
			}
			return refused
		}}
		if res, err := eng.RunCode(t.Context(), engine.Spec{}, c, nil); !errors.Is(err, refused) || res != nil {
			t.Errorf("%+v, %v", res, err)
		}
		// The check comes first, even for a Spec that could not be started.
		if _, err := eng.RunCode(t.Context(), engine.Spec{Hostname: "?"}, c, nil); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
	})
}

// A run that ends badly does not harm the next one.
func TestAfterwards(t *testing.T) {
	eng := testbox.Open(t)
	t.Run("codecell: after a timeout", func(t *testing.T) {
		t.Parallel()
		piece{source: "while True: pass", limits: engine.Limits{Wall: short}, outcome: engine.OutcomeTimeout}.run(t, eng,
			testbox.Adders())
		piece{source: "add(1, 2)", value: "3"}.run(t, eng, testbox.Adders())
		endless := piece{source: "while True: pass", limits: engine.Limits{Wall: enough}}
		box := testbox.Start(t, eng, engine.Spec{Keep: true, Limits: endless.limits})
		for range 2 {
			res, err := box.RunCode(t.Context(), endless.code(), testbox.Adders())
			if err != nil || res.Outcome != engine.OutcomeTimeout {
				t.Fatalf("%+v, %v", res, err)
			}
			// The wall clock limit applies to each run, not to the sandbox.
			if res, err = box.RunCode(t.Context(), piece{source: "add(1, 2)"}.code(), testbox.Adders()); err != nil ||
				string(res.Code.Value) != "3" {
				t.Errorf("%+v, %v", res, err)
			}
		}
	})
	t.Run("codecell: runs have ids, which stay", func(t *testing.T) {
		t.Parallel()
		own := testbox.OpenWith(t, engine.Options{})
		var ids []string
		for range 2 {
			res := piece{source: "1"}.run(t, own, testbox.Adders())
			if !regexp.MustCompile(`^r_[0-9a-f]{16}$`).MatchString(res.Code.Run) {
				t.Errorf("id %q", res.Code.Run)
			}
			if err := own.Close(); err != nil {
				t.Fatal(err)
			}
			ids, own = append(ids, res.Code.Run), testbox.OpenWith(t, engine.Options{})
		}
		if ids[0] == ids[1] {
			t.Errorf("two runs are %s", ids[0])
		}
	})
}
