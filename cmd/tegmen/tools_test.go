package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
)

func TestParseTools(t *testing.T) {
	run := []string{"true"}
	for _, c := range []struct {
		in   string
		want []hostTool
		err  string // a part of it
	}{
		{` {"tools": [] } `, nil, "no tools"},
		{`[{"name":"a","command":["true"]}]`, []hostTool{{Name: "a", Command: run}}, ""},
		{`{"tools":[{"name":"n.a","description":"d","command":["true"],"schema":{"type":"object"},` +
			`"timeout":"1m","env":["A","B=c"],"cwd":"x"}]}`,
			[]hostTool{{
				Name: "n.a", Description: "d", Command: run, Schema: []byte(`{"type":"object"}`),
				Timeout: "1m", Env: []string{"A", "B=c"}, Dir: "x", timeout: time.Minute,
			}}, ""},
		{`[{"name":"a","command":["true"],"timeout":"none"}]`,
			[]hostTool{{Name: "a", Command: run, Timeout: "none", timeout: engine.UnlimitedTime}}, ""},
		{"", nil, "no tools"},
		{"[]", nil, "no tools"},
		{"[\n{]", nil, "line 2: "},
		{"[]\n\n[]", nil, "line 3: unexpected text after the end"},
		{`{"tools":null}`, nil, "no tools"},
		{`{"tools":{}}`, nil, "tools: must be a list, not object"},
		{`[null]`, nil, "tool 1: must not be null"},
		{`[{"name":"a","command":["true"]},{"name":"b","command":["true"],"x":1}]`, nil, `tool "b": unknown field "x"`},
		{`[{"name":7,"command":["true"]}]`, nil, "tool 1: name: must be a string, not number"},
		{`[{"name":"a","command":[1]}]`, nil, `tool "a": command: must be a list of strings, not number`},
		{`[{"name":"a","command":[""]}]`, nil, `tool "a": no command`},
		{`[{"name":"a","command":["true","\u0000"]}]`, nil, "NUL"},
		{`[{"name":"a","command":["true"],"schema":null}]`, nil, "schema: must be an object"},
		{`[{"name":"a","command":["true"],"schema":[]}]`, nil, "schema: must be an object"},
		{`[{"name":"a","command":["true"],"schema":{"type":"string"}}]`, nil, "schema: arguments are an object"},
		{`[{"name":"a","command":["true"],"timeout":5}]`, nil, "timeout: must be a string such as 5s"},
		{`[{"name":"a","command":["true"],"timeout":"-5s"}]`, nil, "timeout: "},
		{`[{"name":"a","command":["true"],"env":["=b"]}]`, nil, "env: "},
		{`[{"name":"a","command":["true"],"env":["A B"]}]`, nil, `env: "A B": use NAME or NAME=value`},
		{`[{"name":"a","command":["true"],"env":["A","A-B=c"]}]`, nil, `env: "A-B=c": use NAME or NAME=value`},
		{`[{"name":"a","command":["true"],"env":["1A=c"]}]`, nil, `env: "1A=c": `},
		{`[{"name":"a","command":["true"],"env":["_a1=ä b=c"]}]`,
			[]hostTool{{Name: "a", Command: run, Env: []string{"_a1=ä b=c"}}}, ""},
		{`{"description":"d","command":["true"],"name":"a"}`, nil, `one tool outside a list: use [{"name"`},
		{"[\n{\"name\": \n\n", nil, "line 2: the file ends too early"},
	} {
		got, err := parseTools([]byte(c.in))
		if c.err != "" {
			if err == nil || got != nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %+v, %v; want an error with %q", c.in, got, err, c.err)
			}
		} else if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.in, got, err, c.want)
		}
	}
}

// Relative paths in a file of tools start at the file, however it is named.
func TestToolPaths(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sub", "wd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"tool":       "#!/bin/sh\necho \"$0 $(pwd)\"\n",
		"tools.json": `[{"name":"a","command":["./tool"],"cwd":"wd"}]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, "sub", name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := `"` + dir + "/sub/tool " + dir + `/sub/wd"`
	for cwd, file := range map[string]string{
		"/": dir + "/sub/tools.json", dir: "sub/tools.json", dir + "/sub": "tools.json", dir + "/sub/wd": "../tools.json",
	} {
		t.Chdir(cwd)
		tools, set := new(hostTools), new(broker.Set)
		if err := tools.open(set, []string{file}); err != nil {
			t.Errorf("%s in %s: %v", file, cwd, err)
			continue
		}
		call := set.Tools()[0].Call
		got, err := call(t.Context(), []byte("{}"))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s in %s: %s, %v; want %s", file, cwd, got, err, want)
		}
		tools.close()
		if got, err := call(t.Context(), []byte("{}")); err == nil {
			t.Errorf("called after the end: %s", got)
		}
	}
}

func TestLastPart(t *testing.T) {
	for _, c := range []struct {
		writes []string
		want   string
	}{
		{nil, ""},
		{[]string{"one\n", "two\n"}, "one\ntwo"},
		{[]string{"0123456789\n", "two\n"}, "two"},
		{[]string{"one\n0123456789"}, "0123456789"},
		{[]string{"0123456789ab"}, "23456789ab"},
		{[]string{"0123456789a\n"}, "23456789a"},
		{[]string{"0123456789\ntwo\n"}, "two"},
		{[]string{"0", "123456789\n", "", "two"}, "two"},
		{[]string{"äääääää"}, "äääää"},
		{[]string{"xäääääx"}, "\ufffdääääx"},
	} {
		w := &lastPart{limit: 10}
		for _, s := range c.writes {
			if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("%q: %d, %v", s, n, err)
			}
		}
		if got := w.text(); got != c.want {
			t.Errorf("%q: %q, want %q", c.writes, got, c.want)
		}
	}
}

// FuzzTools: a file of tools gives an error of one line, or tools that can be run if their
// programs exist.
func FuzzTools(f *testing.F) {
	for _, s := range []string{
		`[{"name":"a","command":["true"]}]`,
		`{"tools":[{"name":"n.a","command":["true"],` +
			`"schema":{"type":"object","properties":{"x":{"type":"string","pattern":"^a+$"}}}}]}`,
		`[{"name":"a","command":["true"],"timeout":"5s","env":["A","B=c"],"cwd":"x","description":"d"}]`,
		`{"tools":null}`, `[null]`, `[{"schema":{"$ref":"#/a"}}]`, "[\n{]", `[{"name":"a","name":1}]`,
		`[{"NAME":"a","Command":["x"]}]`, `[] []`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tools, err := parseTools(b)
		if err != nil {
			if tools != nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v and %q", b, tools, err)
			}
			return
		}
		for _, tool := range tools {
			complete := tool.Name != "" && len(tool.Command) > 0 && tool.Command[0] != ""
			if !complete || tool.timeout < 0 || (tool.timeout == 0) != (tool.Timeout == "") {
				t.Errorf("%q: %+v", b, tool)
			}
			call := new(hostTools).tracked(hostCommand{}.call)
			_ = broken(broker.Tool{Name: tool.Name, Schema: tool.Schema, Call: call}) // may refuse, must not panic
		}
	})
}
