//go:build linux

package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// dialogue is a file of testdata/dialogues: what guests in every language say to the same tools, and the result.
type dialogue struct {
	name  string
	code  map[string]string // by language
	skip  map[string]string // why a language has none
	wants []want

	set   string // namespace that it is pinned to
	limit int
	vars  map[string]any
	stdin string
}

type want struct{ what, text string }

func dialogues(t *testing.T) (all []dialogue) {
	t.Helper()
	files, err := filepath.Glob("testdata/dialogues/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		d := dialogue{name: strings.TrimSuffix(filepath.Base(f), ".txtar"), code: make(map[string]string),
			skip: make(map[string]string)}
		for _, part := range a.Files {
			if part.Name != "want" {
				d.code[part.Name] = string(part.Data)
				continue
			}
			for line := range strings.Lines(string(part.Data)) {
				what, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				d.parse(t, what, text)
			}
		}
		for _, lang := range []string{"python", "node", "sh", "go"} {
			if _, ok := d.code[lang]; ok == (d.skip[lang] != "") {
				t.Errorf("%s: %s: want either code or a reason to skip", f, lang)
			}
		}
		all = append(all, d)
	}
	return all
}

func (d *dialogue) parse(t *testing.T, what, text string) {
	t.Helper()
	var err error
	switch what {
	case "skip":
		lang, why, _ := strings.Cut(text, ": ")
		d.skip[lang] = why
	case "set":
		d.set = strings.TrimPrefix(text, "namespace=")
	case "limit":
		d.limit, err = strconv.Atoi(text)
	case "vars":
		err = json.Unmarshal([]byte(text), &d.vars)
	case "stdin":
		d.stdin, err = strconv.Unquote(`"` + text + `"`)
	case "":
	default:
		d.wants = append(d.wants, want{what, text})
	}
	if err != nil {
		t.Fatal(d.name, err)
	}
}

// Guests in all languages have the same dialogues.
func TestDialogues(t *testing.T) {
	testbox.EachLevel(t, testDialogues, testbox.Namespaces, testbox.ProcessGroups)
}

func testDialogues(t *testing.T, l testbox.Level) {
	testenv.Long(t)
	eng := l.Open(t)
	all := dialogues(t)
	program := goDialogues(t, all)
	for _, d := range all {
		for lang, source := range d.code {
			if lang == "sh" {
				t.Run(d.name+"/bash", func(t *testing.T) { d.converse(t, eng, "bash", source, "") })
			}
			t.Run(d.name+"/"+lang, func(t *testing.T) { d.converse(t, eng, lang, source, program) })
		}
	}
}

func (d *dialogue) converse(t *testing.T, eng *engine.Engine, lang, source, program string) {
	tools := conversation()
	tools.Namespace = d.set
	s := engine.Spec{Limits: engine.Limits{ToolCalls: d.limit, Wall: time.Minute}}
	if lang == "go" {
		dir := filepath.Dir(program)
		s.FS.Mounts = []engine.Mount{{Type: engine.MountBind, Source: dir, Target: dir, ReadOnly: true}}
	} else {
		testenv.Need(t, testenv.Program(map[string]string{"python": "python3", "node": "node", "sh": "sh",
			"bash": "bash"}[lang]))
	}
	box := testbox.Start(t, eng, s)
	ctx := testbox.Within(t, time.Minute)
	var res *engine.Result
	var err error
	if lang == "go" {
		cmd := box.CommandContext(ctx, program, d.name)
		cmd.Tools, cmd.Stdin = tools, strings.NewReader(d.stdin)
		if d.vars != nil {
			vars, err := json.Marshal(d.vars)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args = append(cmd.Args, string(vars))
		}
		res, err = cmd.Run()
	} else {
		res, err = box.RunCode(ctx, engine.Code{Language: lang, Source: source, Vars: d.vars, Stdin: strings.NewReader(d.stdin)},
			tools)
	}
	if err != nil {
		t.Fatal(err)
	}
	outcome := false
	for _, w := range d.wants {
		outcome = outcome || w.what == "outcome"
		if got := w.differs(t, res, lang); got != "" {
			t.Errorf("%s: got %s, want %s", w.what, got, w.text)
		}
	}
	if !outcome && res.Outcome != engine.OutcomeOK {
		t.Errorf("%s, exit %d", res.Outcome, res.ExitCode)
	}
	if t.Failed() {
		t.Logf("value %s, error %+v, stdout %q, stderr %.2000s", res.Code.Value, res.Code.Error, res.Stdout, res.Stderr)
	}
}

// differs returns what the Result has instead of what is wanted, or "".
func (w want) differs(t *testing.T, r *engine.Result, lang string) string {
	t.Helper()
	text := func(got string, want string) string {
		if got == want {
			return ""
		}
		return got
	}
	interpreted := lang == "python" || lang == "node" // which tell of an exception
	switch w.what {
	case "value":
		var got, want any
		if json.Unmarshal([]byte(w.text), &want) != nil {
			t.Fatalf("want value %s", w.text)
		}
		_ = json.Unmarshal(r.Code.Value, &got)
		if fmt.Sprint(got) != fmt.Sprint(want) || r.Code.Value == nil {
			return string(r.Code.Value) + "."
		}
	case "no":
		return text(string(r.Code.Value), "")
	case "outcome":
		if lang == "go" && w.text == "exit" && r.Outcome == engine.OutcomeExit {
			return ""
		}
		return text(string(r.Outcome), w.text)
	case "exit":
		return text(strconv.Itoa(r.ExitCode), w.text)
	case "stdout":
		return text(strings.ReplaceAll(string(r.Stdout), "\n", `\n`), w.text)
	case "stderr":
		if !strings.Contains(string(r.Stderr), w.text) {
			return string(r.Stderr) + "."
		}
	case "error":
		switch {
		case !interpreted:
		case r.Code.Error == nil:
			return "none"
		default:
			return text(r.Code.Error.Type, w.text)
		}
	case "calls":
		for _, c := range strings.Fields(w.text) {
			name, n, _ := strings.Cut(c, "=")
			if got := strconv.Itoa(r.Code.Tools[name].Calls); got != n {
				return name + "=" + got
			}
		}
	default:
		t.Fatalf("%s: no such thing to want", w.what)
	}
	return ""
}

// conversation returns the tools of the dialogues.
func conversation() *broker.Set {
	s := testbox.Adders()
	broker.Add(s, "multiply", "", func(_ context.Context, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (int, error) {
		return in.A * in.B, nil
	})
	broker.Add(s, "echo", "Returns what it is given.", func(_ context.Context, in struct {
		Value any `json:"value"`
	}) (any, error) {
		return in.Value, nil
	})
	for _, ns := range []string{"db", "log"} {
		broker.Add(s, ns+".query", "", func(_ context.Context, in struct {
			SQL string `json:"sql"`
		}) (string, error) {
			return ns + ":" + in.SQL, nil
		})
	}
	broker.Add(s, "fail", "", func(_ context.Context, in struct {
		Type string `json:"type,omitempty"`
	}) (any, error) {
		if in.Type == "" {
			return nil, errors.New("out of luck")
		}
		return nil, fmt.Errorf("it says: %w", &broker.Error{Type: in.Type, Message: "no"})
	})
	broker.Add(s, "forbidden", "", func(context.Context, struct{}) (any, error) { return nil, nil })
	s.Permit = func(_ context.Context, c broker.Call) error {
		if c.Name == "forbidden" {
			return errors.New("not on a Sunday")
		}
		return nil
	}
	s.AddRaw(broker.Tool{Name: "late", Timeout: time.Millisecond,
		Call: func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	broker.Add(s, "turn", "Turns bytes round.", func(_ context.Context, in struct {
		Data []byte `json:"data"`
	}) ([]byte, error) {
		for i, j := 0, len(in.Data)-1; i < j; i, j = i+1, j-1 {
			in.Data[i], in.Data[j] = in.Data[j], in.Data[i]
		}
		return in.Data, nil
	})
	var party sync.WaitGroup
	party.Add(3)
	broker.Add(s, "meet", "", func(ctx context.Context, _ struct{}) (bool, error) {
		party.Done()
		party.Wait()
		return true, nil
	})
	broker.Add(s, "steps", "", func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			if err := broker.Progress(ctx, i); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	broker.Add(s, "big", "", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return strings.Repeat("x", in.N), nil
	})
	return s
}

// goDialogues builds a program with the Go part of all dialogues. Its first argument selects one.
func goDialogues(t *testing.T, all []dialogue) string {
	t.Helper()
	testenv.Need(t, testenv.Program("go"))
	var b strings.Builder
	b.WriteString(goHead)
	for _, d := range all {
		if source, ok := d.code["go"]; ok {
			fmt.Fprintf(&b, "%q: func(ctx context.Context, c *client) (any, error) {\n%s},\n", d.name, source)
		}
	}
	b.WriteString("}\n")
	dir := testenv.Dir(t)
	text, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	place, err := filepath.Abs("testdata/goguest/dialogues/main.go") // where it could be, to import what it needs
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{place: text}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{text: []byte(b.String()), overlay: replace} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(testenv.Dir(t), "guest")
	cmd := testbox.GoBuild(program, filepath.Dir(place))
	cmd.Args = append(cmd.Args[:2], append([]string{"-overlay", overlay}, cmd.Args[2:]...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

const goHead = `package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/tegmen-dev/tegmen/guest"
)

var _, _, _ = io.EOF, exec.ErrNotFound, strings.Fields

type client struct {
	*guest.Client
	done bool
}

// Job has the variables that other languages are given by the engine.
func (c *client) Job() (j guest.Job) {
	if len(os.Args) > 2 {
		_ = json.Unmarshal([]byte(os.Args[2]), &j.Vars)
	}
	return j
}

func (c *client) Result(v any) error {
	c.done = true
	return c.Client.Result(v)
}

func main() {
	g, err := guest.Dial()
	c := &client{Client: g}
	var v any
	if err == nil {
		v, err = says[os.Args[1]](context.Background(), c)
	}
	if err == nil && v != nil && !c.done {
		err = c.Result(v)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var _ = errors.Is

var says = map[string]func(context.Context, *client) (any, error){
`
