package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
)

// hostTool describes, in a file of tools, a command on the host that code may call.
type hostTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`  // of the arguments; without one all are accepted
	Command     []string        `json:"command"` // a relative path starts at the file's directory
	Dir         string          `json:"cwd"`     // likewise; "" is tegmen's directory
	Env         []string        `json:"env"`     // "NAME", with tegmen's value, or "NAME=value"
	Timeout     string          `json:"timeout"` // as for --timeout; "" means --tool-timeout

	timeout time.Duration
}

// toolField is the type of each field, for messages.
var toolField = map[string]string{
	"name": "a string", "description": "a string", "command": "a list of strings", "timeout": "a string such as 5s",
	"env": "a list of strings", "cwd": "a string", "tools": "a list",
}

const toolsForm = `[{"name": …, "command": […]}, …] or {"tools": […]}`

// envEntry matches NAME and NAME=value.
var envEntry = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(=|$)`)

// parseTools reads a file of tools: a list, or an object with the list in its field tools.
func parseTools(b []byte) ([]hostTool, error) {
	var file struct {
		Tools []json.RawMessage `json:"tools"`
	}
	var err error
	if text := bytes.TrimSpace(b); len(text) > 0 && text[0] == '[' {
		err = strict(b, &file.Tools)
	} else if len(text) > 0 {
		err = strict(b, &file)
	}
	var single hostTool
	if err != nil && json.Unmarshal(b, &single) == nil && (single.Name != "" || single.Command != nil) {
		return nil, fmt.Errorf("one tool outside a list: use %s", toolsForm)
	}
	if err != nil {
		return nil, err
	}
	list := file.Tools
	if len(list) == 0 {
		return nil, fmt.Errorf("no tools: use %s", toolsForm)
	}
	tools := make([]hostTool, len(list))
	for i, one := range list {
		if err := tools[i].parse(one); err != nil {
			return nil, fmt.Errorf("%s: %w", titleOf(one, i), err)
		}
	}
	return tools, nil
}

// titleOf names a tool in messages, even if the rest of it cannot be read.
func titleOf(b []byte, i int) string {
	var t struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(b, &t) // the caller reports what is wrong
	if t.Name != "" {
		return fmt.Sprintf("tool %q", t.Name)
	}
	return fmt.Sprintf("tool %d", i+1)
}

func (t *hostTool) parse(b []byte) error {
	if err := strict(b, t); err != nil {
		return err
	}
	switch {
	case t.Name == "":
		return errors.New("no name")
	case len(t.Command) == 0 || t.Command[0] == "":
		return errors.New("no command")
	}
	for _, s := range append(append([]string{t.Dir}, t.Command...), t.Env...) {
		if strings.ContainsRune(s, 0) {
			return fmt.Errorf("%q: contains a NUL byte", s)
		}
	}
	for _, e := range t.Env {
		if !envEntry.MatchString(e) {
			return fmt.Errorf("env: %q: use NAME or NAME=value", e)
		}
	}
	if t.Timeout != "" {
		var err error
		if t.timeout, err = parseTime(t.Timeout); err != nil {
			return fmt.Errorf("timeout: %q: %w", t.Timeout, err)
		}
	}
	if t.Schema == nil {
		return nil
	}
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(t.Schema, &schema); err != nil || schema == nil {
		return fmt.Errorf("schema: must be an object")
	}
	if kind, ok := schema["type"]; ok && string(kind) != `"object"` {
		return fmt.Errorf(`schema: arguments are an object: use "type": "object"`)
	}
	return nil
}

// strict decodes JSON, refuses fields that v does not have, and reports errors by line and
// field.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil && len(bytes.TrimSpace(b[d.InputOffset():])) > 0:
		rest := bytes.TrimLeft(b[d.InputOffset():], " \t\r\n")
		return fmt.Errorf("line %d: unexpected text after the end", lineOf(b, int64(len(b)-len(rest))))
	case err == nil && bytes.Equal(bytes.TrimSpace(b), []byte("null")):
		return errors.New("must not be null")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: the file ends too early", lineOf(b, int64(len(bytes.TrimRight(b, " \t\r\n")))))
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: %w", lineOf(b, syntax.Offset), err)
	case errors.As(err, &kind):
		if want, ok := toolField[kind.Field]; ok {
			return fmt.Errorf("%s: must be %s, not %s", kind.Field, want, kind.Value)
		}
		return fmt.Errorf("unexpected %s", kind.Value)
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func lineOf(b []byte, offset int64) int {
	return 1 + bytes.Count(b[:min(int(offset), len(b))], []byte("\n"))
}

// open adds the tools of files to a set, after looking up their programs and directories.
func (h *hostTools) open(set *broker.Set, files []string) error {
	from := make(map[string]string)
	for _, file := range files {
		b, err := readFile(file)
		if err != nil {
			return err
		}
		tools, err := parseTools(b)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, t := range tools {
			if other, ok := from[t.Name]; ok {
				return fmt.Errorf("%s: tool %q: already defined in %s", file, t.Name, other)
			}
			from[t.Name] = file
			call, err := h.function(t, filepath.Dir(file))
			if err != nil {
				return fmt.Errorf("%s: tool %q: %w", file, t.Name, err)
			}
			tool := broker.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema, Timeout: t.timeout, Call: call}
			set.AddRaw(tool)
			if err := broken(tool); err != nil {
				return fmt.Errorf("%s: tool %q: %w", file, t.Name, err)
			}
		}
	}
	return nil
}

// broken reports why the broker refuses a tool.
func broken(t broker.Tool) error {
	set := new(broker.Set)
	set.AddRaw(t)
	err := set.Err()
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("schema: %s where none belongs", kind.Value)
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), fmt.Sprintf("tool %q: ", t.Name)))
	}
	return nil
}

// function makes the tool callable.
func (h *hostTools) function(t hostTool, dir string) (call toolFunc, err error) {
	c := hostCommand{args: t.Command[1:], env: hostEnv(t.Env), dir: t.Dir}
	if c.dir != "" && !filepath.IsAbs(c.dir) {
		if c.dir, err = filepath.Abs(filepath.Join(dir, c.dir)); err != nil {
			return nil, err
		}
	}
	var at *fs.PathError
	if info, err := os.Stat(c.dir); c.dir != "" && errors.As(err, &at) {
		return nil, fmt.Errorf("cwd: %s: %w", c.dir, at.Err)
	} else if c.dir != "" && !info.IsDir() {
		return nil, fmt.Errorf("cwd: %s: not a directory", c.dir)
	}
	name := t.Command[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		// The command starts in a directory that may differ.
		if name, err = filepath.Abs(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	if c.path, err = exec.LookPath(name); err != nil {
		var missing *exec.Error
		if errors.As(err, &missing) {
			err = missing.Err
		}
		if errors.As(err, &at) { // it repeats the path
			err = at.Err
		}
		return nil, fmt.Errorf("command: %s: %w", name, err)
	}
	return h.tracked(c.call), nil
}

// hostEnv is a tool's environment: the variables that programs need, and those that it
// asks for.
func hostEnv(asked []string) []string {
	env := []string{} // nil would pass on all of tegmen's
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name == "PATH" || name == "HOME" || name == "TMPDIR" || name == "LANG" || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	for _, e := range asked {
		if kv, ok := parseEnv(e); ok {
			env = append(env, kv)
		}
	}
	return env
}
