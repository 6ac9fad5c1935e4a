package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/check"
	"github.com/tegmen-dev/tegmen/engine"
)

// codeOptions are the flags of tegmen code alone.
type codeOptions struct {
	engine.Code
	source string // of -e
	given  bool   // there is a -e
	check  bool
	value  bool
	files  []string // of tools
	allow  []string
}

func codeMain(args []string) (int, error) {
	var o options
	args, err := o.parse("code", args)
	if err != nil {
		return 0, err
	}
	if err := o.code.read(args, o.readsInput()); err != nil {
		return 0, fmt.Errorf("code: %w", err)
	}
	tools := new(hostTools)
	set, err := o.code.open(tools)
	if err != nil {
		return 0, fmt.Errorf("code: %w", err)
	}
	if err := o.code.checkers(); err != nil {
		return 0, fmt.Errorf("code: %w", err)
	}
	var found *check.Error
	if err := o.code.Validate(set); errors.As(err, &found) {
		return 0, fmt.Errorf("code: rejected by --check: %s", strings.Join(found.Found, "; "))
	} else if err != nil {
		return 0, err
	}
	o.useVenv()
	o.spec.Limits.Frame = cmp.Or(o.spec.Limits.Frame, frame)
	var line lastByte
	if o.code.value {
		line.w = os.Stdout
		o.stdout = &line
	}
	res, err := o.run(func(ctx context.Context, box *engine.Sandbox) (*engine.Cmd, error) {
		return box.CodeContext(ctx, o.code.Code, set)
	})
	tools.close()
	if err != nil {
		return 0, err
	}
	if o.code.value {
		if err := line.printValue(res.Code.Value); err != nil {
			return 0, err
		}
	}
	return o.report(res)
}

// readsInput is the flag that reads standard input; "" is none.
func (o *options) readsInput() string {
	switch {
	case o.interactive:
		return "-i"
	case o.specFile == "-":
		return "--spec -"
	}
	return ""
}

// read finds the code, its language and its arguments. input is a flag that reads standard
// input already.
func (c *codeOptions) read(args []string, input string) error {
	language := "python"
	switch {
	case c.given:
		c.Source, c.Args = c.source, args
	case len(args) == 0 || args[0] == "":
		return errors.New("no code given: tegmen code [flags] -e CODE | FILE | - [ARG...]")
	case args[0] == "-":
		if input != "" {
			return fmt.Errorf("%s and - are mutually exclusive: both read standard input", input)
		}
		b, err := readText("standard input", os.Stdin)
		if err != nil {
			return err
		}
		c.Source, c.Args = string(b), args[1:]
	default:
		if ext := filepath.Ext(args[0]); c.Language == "" && slices.Contains([]string{".ts", ".mts", ".cts", ".tsx"}, ext) {
			return fmt.Errorf("%s: %s", args[0], noTypeScript)
		}
		language = languageOf(args[0])
		if language == "" && c.Language == "" {
			return fmt.Errorf("%s: the name does not show the language: add --lang %s",
				args[0], strings.Join(engine.Languages(), "|"))
		}
		b, err := readFile(args[0])
		if err != nil {
			return err
		}
		c.Source, c.Args = string(b), args[1:]
	}
	if c.Language == "" {
		c.Language = language
	}
	return nil
}

// checkers sets the check that --check asks for.
func (c *codeOptions) checkers() error {
	switch {
	case !c.check:
	case c.Language == "python":
		c.Check = check.Python
	case c.Language == "sh" || c.Language == "bash":
		c.Check = check.Shell
	default:
		return fmt.Errorf("--check supports python, sh and bash, not %s", c.Language)
	}
	return nil
}

// languageOf guesses from the name of a file; "" is unknown.
func languageOf(file string) string {
	return map[string]string{
		".py": "python", ".js": "node", ".mjs": "node", ".cjs": "node", ".sh": "sh", ".bash": "bash",
	}[filepath.Ext(file)]
}

// open makes a set of the tools that the code may call.
func (c *codeOptions) open(tools *hostTools) (*broker.Set, error) {
	set := &broker.Set{Allow: c.allow}
	if err := tools.open(set, c.files); err != nil {
		return nil, err
	}
	return set, set.Err()
}

// lastByte passes output on and remembers whether it ends with a line break.
type lastByte struct {
	w    io.Writer
	open bool // it does not
}

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.open = p[len(p)-1] != '\n'
	}
	return l.w.Write(p)
}

// printValue prints JSON on a line of its own, unless it is null.
func (l *lastByte) printValue(v json.RawMessage) error {
	if v == nil || string(v) == "null" {
		return nil
	}
	if l.open {
		v = append([]byte("\n"), v...)
	}
	_, err := l.w.Write(append(v, '\n'))
	return err
}
