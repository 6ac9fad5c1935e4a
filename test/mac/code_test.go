//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
)

// Code in each language calls a tool, returns the answer if the language can, and cannot disturb the channel with its
// output.
func TestLanguages(t *testing.T) {
	eng := open(t, nil)
	for _, c := range []struct{ language, interpreter, source, stdout, value string }{
		{"python", "python3", "print(add(a=40, b=2))\nadd(a=1, b=2)", "42\n", "3"},
		{"node", "node", "console.log(await add({a: 40, b: 2}));\nreturn await add({a: 1, b: 2});", "42\n", "3"},
		{"sh", "sh", "echo $(add 40 2)", "42\n", ""},
		{"bash", "bash", "x=$(add 40 2); echo $x", "42\n", ""},
	} {
		t.Run(c.language, func(t *testing.T) {
			needs(t, c.interpreter)
			res := code(t, eng, engine.Spec{}, c.language, c.source)
			if res.Outcome != engine.OutcomeOK || string(res.Stdout) != c.stdout || string(res.Code.Value) != c.value ||
				len(res.Code.ToolCalls) == 0 || res.Code.ToolCalls[0].Error != "" {
				t.Errorf("%s, stdout %q, value %s, calls %+v, error %+v, stderr %s", res.Outcome, res.Stdout, res.Code.Value,
					res.Code.ToolCalls, res.Code.Error, res.Stderr)
			}
		})
	}
}

// A session keeps its variables from one piece of code to the next.
func TestSession(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	for _, c := range []struct{ language, interpreter, first, second string }{
		{"python", "python3", "x = 41", "x + 1"},
		{"node", "node", "globalThis.x = 41", "return x + 1"},
	} {
		t.Run(c.language, func(t *testing.T) {
			needs(t, c.interpreter)
			s := box.Session(c.language)
			defer s.Close()
			for _, source := range []string{c.first, c.second} {
				res, err := s.RunCode(t.Context(), engine.Code{Language: c.language, Source: source}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if source == c.second && string(res.Code.Value) != "42" {
					t.Errorf("value %s, error %+v", res.Code.Value, res.Code.Error)
				}
			}
		})
	}
}
