package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
)

// AddTo adds the six tools to the tools that a run may call: shell, read_file,
// write_file, list_files, patch_file and run_python. Their results are strings.
//
// A guest that calls them works in the sandbox of t, which need not be its own, and can
// do there whatever that sandbox allows.
func (t *Tools) AddTo(set *broker.Set) {
	limit := t.o.MaxTimeout + time.Minute // the command's own timeout comes first and says more
	timeout := param{"timeout", fmt.Sprintf(`"type": "number", "exclusiveMinimum": 0, "maximum": %s, "default": %s, `+
		`"description": "seconds"`, asSeconds(t.o.MaxTimeout), asSeconds(t.o.Timeout))}
	cwd := param{"cwd", `"type": "string", "minLength": 1, "default": ".", "description": "working directory"`}
	stdin := param{"stdin", `"type": "string", "description": "standard input"`}
	shells, _ := json.Marshal(t.Shells()) // cannot fail for strings
	add(set, t.Shell, broker.Tool{Name: "shell", Timeout: limit, Description: "Run a shell command in the sandbox. " +
		"Returns its output; [stderr] and [stdout] mark where the stream changes, and [exit code: N] or " +
		"[timeout after Ns] how it ended. cd and export do not carry over to the next call; files do."},
		1,
		param{"command", `"type": "string", "minLength": 1`}, timeout, cwd, stdin,
		param{"shell", fmt.Sprintf(`"type": "string", "enum": %s, "default": %q`, shells, t.shells[0].name)})
	t.addFiles(set)
	add(set, t.RunPython, broker.Tool{Name: "run_python", Timeout: limit,
		Description: "Run a Python program in the sandbox. Returns the same as shell."},
		1, param{"code", `"type": "string"`}, cwd, timeout, stdin)
}

func (t *Tools) addFiles(set *broker.Set) {
	path := param{"path", `"type": "string", "minLength": 1, ` +
		`"description": "of the file; absolute, or relative to the working directory of the sandbox"`}
	mode := param{"mode", `"type": ["string", "integer"], "pattern": "^(0o)?[0-7]{1,4}$", ` +
		`"minimum": 0, "maximum": 511, ` +
		`"description": "permissions in octal digits, \"0755\"; default: those of an existing file, else \"0644\""`}
	limit := 3*t.o.FileTimeout + time.Minute
	add(set, t.ReadFile, broker.Tool{Name: "read_file", Timeout: limit,
		Description: "Read a text file or some of its lines. Text beyond max_chars is cut and ends in ...[truncated]."},
		1, path,
		param{"max_chars", fmt.Sprintf(`"type": "integer", "minimum": 1, "default": %d`, defaultChars)},
		param{"binary_as_hex", `"type": "boolean", "default": true, ` +
			`"description": "show a file that is not text in hexadecimal; false: refuse it"`},
		param{"start_line", `"type": "integer", "minimum": 1, "description": "first line, counted from 1"`},
		param{"end_line", `"type": "integer", "minimum": 1, "description": "last line, included"`},
		param{"line_numbers", `"type": "boolean", "default": false, ` +
			`"description": "put L<n>│ before each line; it is not part of the file"`})
	add(set, t.WriteFile, broker.Tool{Name: "write_file", Timeout: limit,
		Description: "Write a whole text file and create its parent directories. Some paths of a workspace, such as " +
			".git/hooks and .vscode, are protected. Shows what changed in an existing file."},
		2, path, param{"content", `"type": "string"`}, mode)
	add(set, t.ListFiles, broker.Tool{Name: "list_files", Timeout: limit,
		Description: "List a directory: permissions, size, modification time, name; directories first."},
		0, param{"path", `"type": "string", "minLength": 1, "default": "."`})
	add(set, t.PatchFile, broker.Tool{Name: "patch_file", Timeout: limit,
		Description: "Replace lines from_line to to_line, counted from 1 and both included, with content; " +
			"to_line = from_line - 1 inserts before from_line. Shows what changed."},
		4, path,
		param{"from_line", `"type": "integer", "minimum": 1`},
		param{"to_line", `"type": "integer", "minimum": 0`},
		param{"content", `"type": "string", "description": "whole lines; empty: delete"`},
		mode,
		param{"first_line_indent", fmt.Sprintf(`"type": "integer", "minimum": 0, "maximum": %d, "default": 0, `+
			`"description": "spaces to put before the first line of content, which then must not begin with any"`,
			maxIndent)})
}

// param is a parameter of a tool: its name and the members of its JSON schema.
type param struct{ name, schema string }

// add adds a tool. Its first parameters are required. Their order in the schema is that
// of positional arguments in a guest.
func add[In any](
	set *broker.Set, f func(context.Context, In) (string, error), tool broker.Tool, required int, params ...param,
) {
	var names, properties []string
	for _, p := range params {
		names = append(names, fmt.Sprintf("%q", p.name))
		properties = append(properties, fmt.Sprintf("%q: {%s}", p.name, p.schema))
	}
	tool.Schema = json.RawMessage(fmt.Sprintf(
		`{"type": "object", "properties": {%s}, "required": [%s], "additionalProperties": false}`,
		strings.Join(properties, ", "), strings.Join(names[:required], ", ")))
	tool.Output = json.RawMessage(`{"type": "string"}`)
	tool.Call = func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, invalid("arguments: %v", err)
		}
		text, err := f(ctx, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(text)
	}
	set.AddRaw(tool)
}
