//go:build linux

package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestTools(t *testing.T) {
	testenv.NoRace(t)
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	tools := toolsOf(t, box, agent.Options{})
	var set broker.Set
	tools.AddTo(&set)
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	type property struct {
		Default, Minimum, Maximum any
		Enum                      []string
	}
	schemas := make(map[string]struct {
		Properties map[string]property
		Required   []string
	})
	var names []string
	for _, tool := range set.Tools() {
		names = append(names, tool.Name)
		s := schemas[tool.Name]
		if err := json.Unmarshal(tool.Schema, &s); err != nil {
			t.Fatal(err)
		}
		schemas[tool.Name] = s
	}
	t.Run("axio: six tools", func(t *testing.T) {
		same(t, strings.Join(names, " "), "shell read_file write_file list_files patch_file run_python")
	})
	t.Run("axio: the bounds of an indent", func(t *testing.T) {
		p := schemas["patch_file"].Properties["first_line_indent"]
		same(t, p.Minimum, any(0.0))
		same(t, p.Maximum, any(256.0))
		same(t, p.Default, any(0.0))
		same(t, slices.Contains(schemas["patch_file"].Required, "first_line_indent"), false)
	})
	t.Run("axio: the shells there are", func(t *testing.T) {
		p := schemas["shell"].Properties["shell"]
		same(t, strings.Join(p.Enum, " "), strings.Join(tools.Shells(), " "))
		same(t, p.Default, any(tools.Shells()[0]))
	})
	t.Run("defaults", func(t *testing.T) {
		same(t, schemas["shell"].Properties["timeout"].Default, any(5.0))
		same(t, schemas["run_python"].Properties["timeout"].Default, any(5.0))
		same(t, schemas["read_file"].Properties["max_chars"].Default, any(32768.0))
		same(t, schemas["read_file"].Properties["binary_as_hex"].Default, any(true))
	})
	call := func(t *testing.T, name, arguments string) (text string, err error) {
		t.Helper()
		all := set.Tools()
		i := slices.IndexFunc(all, func(tool broker.Tool) bool { return tool.Name == name })
		value, err := all[i].Call(testbox.Within(t, time.Minute), json.RawMessage(arguments))
		if err == nil {
			err = json.Unmarshal(value, &text)
		}
		return text, err
	}
	for _, c := range []struct{ name, tool, arguments, want string }{
		{"shell", "shell", `{"command": "cat; exit 3", "stdin": "x", "timeout": 30}`, "x\n[exit code: 3]"},
		{"axio: mode in octal digits", "write_file", `{"path": "a", "content": "x", "mode": "0640"}`, "Wrote 1 bytes to a"},
		{"it is", "shell", `{"command": "stat -c %a a"}`, "640"},
		{"axio: mode as a number", "write_file", `{"path": "b", "content": "one\n", "mode": 384}`, "Wrote 4 bytes to b"},
		{"it is too", "shell", `{"command": "stat -c %a b"}`, "600"},
		{"patch", "patch_file", `{"path": "b", "from_line": 2, "to_line": 1, "content": "two", "first_line_indent": 1}`,
			"@@ -1 +1,2 @@\n one\n+ two"},
		{"read", "read_file", `{"path": "b", "start_line": 2, "end_line": 2, "line_numbers": true}`, "L2│ two\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := call(t, c.tool, c.arguments)
			if err != nil {
				t.Error(err)
			}
			same(t, got, c.want)
		})
	}
	t.Run("a mode that is written as it is not meant", func(t *testing.T) {
		for _, mode := range []string{`755`, `"rwx"`, `"999"`, `-1`, `"01777"`} {
			if got, err := call(t, "write_file", `{"path": "c", "content": "", "mode": `+mode+`}`); err == nil ||
				!strings.Contains(err.Error(), "octal digits") {
				t.Errorf("%s: %q, %v", mode, got, err)
			}
		}
	})
	t.Run("called by code in a sandbox", func(t *testing.T) {
		res, err := box.RunCode(testbox.Within(t, time.Minute), engine.Code{Language: "python", Source: `
write_file("from-code", "one\ntwo\n")
patch_file("from-code", 1, 1, "ONE")
try:
    shell("true", timeout=0)
except Exception as e:
    refused = str(e)
try:
    patch_file("from-code", 1, 1, "x", first_line_indent=257)
except Exception as e:
    refused += str(e)
try:
    read_file("none")
except Exception as e:
    missing = str(e)
result = [read_file("from-code"), "timeout" in refused and "257" in refused, missing, shell("echo hi", shell="sh")]
`}, &set)
		if err != nil {
			t.Fatal(err)
		}
		same(t, string(res.Code.Value), `["ONE\ntwo\n",true,"read file \"none\": file does not exist","hi"]`)
		if t.Failed() {
			t.Logf("%s %s", res.Stdout, res.Stderr)
		}
	})
}
