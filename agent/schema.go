package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
)

// AddTo adds the six tools to what a run may call: shell, read_file, write_file,
// list_files, patch_file and run_python. Their answers are strings.
//
// A guest that calls them works in the tools' sandbox, which need not be its
// own: then it can do there what the one that owns it allows.
func (t *Tools) AddTo(set *broker.Set) {
	shells, _ := json.Marshal(t.Shells()) // of strings: cannot fail
	timeout := param{"timeout", fmt.Sprintf(`"type": "number", "exclusiveMinimum": 0, "maximum": %s, "default": %s, "description": "seconds"`,
		asSeconds(t.o.MaxTimeout), asSeconds(t.o.Timeout))}
	cwd := param{"cwd", `"type": "string", "minLength": 1, "default": ".", "description": "directory to run in"`}
	stdin := param{"stdin", `"type": "string", "description": "what it reads from its standard input"`}
	path := param{"path", `"type": "string", "minLength": 1, "description": "of the file; absolute, or relative to the working directory of the sandbox"`}
	mode := param{"mode", `"type": ["string", "integer"], "pattern": "^(0o)?[0-7]{1,4}$", "minimum": 0, "maximum": 511, ` +
		`"description": "permissions in octal digits, \"0755\"; default: those of a file that exists, else \"0644\""`}

	long := t.o.MaxTimeout + time.Minute // a command has its own timeout, which tells more
	short := 3*t.o.FileTimeout + time.Minute
	add(set, t.Shell, broker.Tool{Name: "shell", Timeout: long, Description: "Run a shell command in the sandbox. " +
		"Returns its output; [stderr] and [stdout] mark where the stream changes, [exit code: N] and [timeout after Ns] how it ended. cd and export do not survive from call to call; files do."},
		1,
		param{"command", `"type": "string", "minLength": 1`}, timeout, cwd, stdin,
		param{"shell", fmt.Sprintf(`"type": "string", "enum": %s, "default": %q`, shells, t.shells[0].name)})
	add(set, t.ReadFile, broker.Tool{Name: "read_file", Timeout: short, Description: "Read a text file, or some of its lines. " +
		"Text beyond max_chars ends in ...[truncated]."},
		1, path,
		param{"max_chars", fmt.Sprintf(`"type": "integer", "minimum": 1, "default": %d`, defaultChars)},
		param{"binary_as_hex", `"type": "boolean", "default": true, "description": "show what is not text as hexadecimal digits; false: refuse it"`},
		param{"start_line", `"type": "integer", "minimum": 1, "description": "first line, counted from 1"`},
		param{"end_line", `"type": "integer", "minimum": 1, "description": "last line, included"`},
		param{"line_numbers", `"type": "boolean", "default": false, "description": "put L<n>│ before each line; it is not part of the file"`})
	add(set, t.WriteFile, broker.Tool{Name: "write_file", Timeout: short, Description: "Write a text file as a whole, making its parent directories; some paths of a workspace, such as .git/hooks and .vscode, are protected. " +
		"Shows what changed in a file that existed."},
		2, path, param{"content", `"type": "string"`}, mode)
	add(set, t.ListFiles, broker.Tool{Name: "list_files", Timeout: short, Description: "List a directory: permissions, size, time of change, name; directories first."},
		0, param{"path", `"type": "string", "minLength": 1, "default": "."`})
	add(set, t.PatchFile, broker.Tool{Name: "patch_file", Timeout: short, Description: "Replace lines from_line to to_line, counted from 1 and both included, by content; " +
		"to_line = from_line - 1 inserts before from_line. Shows what changed."},
		4, path,
		param{"from_line", `"type": "integer", "minimum": 1`},
		param{"to_line", `"type": "integer", "minimum": 0`},
		param{"content", `"type": "string", "description": "whole lines; empty: delete"`},
		mode,
		param{"first_line_indent", fmt.Sprintf(`"type": "integer", "minimum": 0, "maximum": %d, "default": 0, `+
			`"description": "spaces to put before the first line of content, which then has none of its own"`, maxIndent)})
	add(set, t.RunPython, broker.Tool{Name: "run_python", Timeout: long, Description: "Run a Python program in the sandbox. Returns what shell returns."},
		1, param{"code", `"type": "string"`}, cwd, timeout, stdin)
}

// param is a parameter of a tool and the members of its JSON schema.
type param struct{ name, schema string }

// add adds a tool, whose first parameters are required. Their order in the
// schema is that of positional arguments in a guest.
func add[In any](set *broker.Set, f func(context.Context, In) (string, error), tool broker.Tool, required int, params ...param) {
	var names, properties []string
	for _, p := range params {
		names = append(names, fmt.Sprintf("%q", p.name))
		properties = append(properties, fmt.Sprintf("%q: {%s}", p.name, p.schema))
	}
	tool.Schema = json.RawMessage(fmt.Sprintf(`{"type": "object", "properties": {%s}, "required": [%s], "additionalProperties": false}`,
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
