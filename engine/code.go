package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/bootstrap"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// Code is a piece of code to run, which may call tools of the host and return a
// value.
type Code struct {
	// Language is "python", "node", "sh" or "bash"; the interpreter is looked up
	// in the PATH of the sandbox.
	Language string
	Source   string // the code itself
	// Vars are variables that are set before the code runs. Each must be encodable as
	// JSON, and its name an identifier: letters, digits and _, and no digit first.
	Vars map[string]any
	Args []string // its arguments: sys.argv, process.argv, "$@"
	// ExtraEnv is "NAME=value", added to the sandbox's environment.
	ExtraEnv []string
	// Wall bounds the run; 0 means Limits.Wall of the Spec.
	Wall time.Duration
	// Stdin is what the code reads; nil is nothing. See Cmd.Stdin.
	Stdin io.Reader
	// Stdout and Stderr receive what it writes, as it comes; nil keeps it for the
	// Result. See Cmd.Stdout.
	Stdout, Stderr io.Writer
	// Check is called before anything is started, and its error becomes RunCode's. It
	// is a convenience that spares a run; the sandbox decides what the code may do.
	// Package check has two such functions. nil
	// checks nothing.
	Check func(source string) error
}

// RunCode runs code in a sandbox of its own, made by an Engine of its own; see
// Engine.RunCode. A program that runs code more than once keeps an Engine.
func RunCode(ctx context.Context, s Spec, c Code, tools *broker.Set) (_ *Result, err error) {
	e, err := Open(Options{NoTemplates: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return e.RunCode(ctx, s, c, tools)
}

// RunCode runs code in a sandbox of its own, and returns when nothing is left of
// that. tools may be nil. Code that fails is a Result; see Sandbox.RunCode.
func (e *Engine) RunCode(ctx context.Context, s Spec, c Code, tools *broker.Set) (*Result, error) {
	p, err := c.prepare(tools)
	if err != nil {
		return nil, err // before anything is started
	}
	box, err := e.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	res, err := box.prepared(ctx, c, p, tools, false).Run()
	err = errors.Join(err, box.Close())
	if res != nil {
		var herr error
		res.Held, herr = box.Held() // with what was left behind
		err = errors.Join(err, herr)
	}
	return res, err
}

// RunCode runs code in the sandbox: the next run finds the files that it leaves, and
// not its variables; see Session for those. The wall clock limit covers the tools
// that it calls: their contexts are done when it ends in any way. The Result has
// what the code returned, how it failed, what it wrote until then, and its calls.
// The error is ErrInvalid for code or tools that cannot be used, and an ExecError if
// the sandbox has no such interpreter.
func (s *Sandbox) RunCode(ctx context.Context, c Code, tools *broker.Set) (*Result, error) {
	cmd, err := s.CodeContext(ctx, c, tools)
	if err != nil {
		return nil, err
	}
	return cmd.Run()
}

// CodeContext returns the command that runs code in the sandbox, for callers that
// signal it, or that start it and wait for it separately. Its Result and errors are
// those of Sandbox.RunCode.
func (s *Sandbox) CodeContext(ctx context.Context, c Code, tools *broker.Set) (*Cmd, error) {
	p, err := c.prepare(tools)
	if err != nil {
		return nil, err
	}
	return s.prepared(ctx, c, p, tools, false), nil
}

// Validate returns why the code cannot be run with these tools, as far as that can
// be told without a sandbox; it calls Check as well. tools may be nil.
func (c Code) Validate(tools *broker.Set) error {
	_, err := c.prepare(tools)
	return err
}

// codeJob is the part of a Cmd that runs code.
type codeJob struct {
	job         wire.Job // answers its hello
	texts       []string // for its interpreter to read; see box.Request
	textDir     string
	toolContext context.Context // of tools; nil: the command's
}

func (s *Sandbox) prepared(ctx context.Context, c Code, p prepared, tools *broker.Set, stateful bool) *Cmd {
	dir := s.newTextDir()
	launch := p.launch(dir)
	cmd := s.CommandContext(ctx, launch.Argv[0], launch.Argv[1:]...)
	cmd.ExtraEnv = append(slices.Clone(c.ExtraEnv), launch.Env...)
	cmd.Wall = c.Wall
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.Tools = tools
	if cmd.Tools == nil {
		cmd.Tools = new(broker.Set)
	}
	cmd.code = &codeJob{texts: launch.Files, textDir: dir}
	cmd.code.job = wire.Job{Language: c.Language, Stateful: stateful, Brief: !launch.Hello}
	if launch.Hello { // an interpreter that does not ask has it, and may be slow to read
		cmd.code.job.Code, cmd.code.job.Vars, cmd.code.job.Args = c.Source, p.vars, c.Args
	}
	return cmd
}

// prepared is code that can be started.
type prepared struct {
	launch func(dir string) bootstrap.Launch // dir is that of bootstrap.Script
	vars   map[string]json.RawMessage
}

func (c Code) prepare(tools *broker.Set) (prepared, error) {
	p, err := c.compile(tools)
	if err == nil && c.Check != nil {
		err = c.Check(c.Source)
	}
	if err != nil {
		return p, &Error{Op: "run code", Path: c.Language, Err: err}
	}
	return p, nil
}

func (c Code) compile(tools *broker.Set) (p prepared, err error) {
	if tools != nil {
		if err := tools.Err(); err != nil {
			return p, invalidBecause("", err)
		}
	}
	if c.Wall < 0 {
		return p, invalid("a negative time")
	}
	p.vars = make(map[string]json.RawMessage, len(c.Vars))
	for name, v := range c.Vars {
		if !bootstrap.Identifier(name) {
			return p, invalidField("vars", quoted(name), "not a name: letters, digits and _, and no digit first")
		}
		if p.vars[name], err = json.Marshal(v); err != nil {
			return p, &InvalidError{Field: "vars", Value: quoted(name), Problem: err.Error(), Err: err}
		}
	}
	for _, l := range languages() {
		if l.name == c.Language {
			p.launch = func(dir string) bootstrap.Launch { return l.launch(c, tools, p.vars, dir) }
			return p, nil
		}
	}
	return p, invalid("language %q: not one of %s", c.Language, strings.Join(Languages(), ", "))
}

// Languages lists what Code.Language may be.
func Languages() (names []string) {
	for _, l := range languages() {
		names = append(names, l.name)
	}
	return names
}

// language is one that code may be in.
type language struct {
	name     string
	sessions bool // its interpreter takes one piece of code after another
	launch   func(c Code, tools *broker.Set, vars map[string]json.RawMessage, dir string) bootstrap.Launch
}

func languages() []language {
	python := func(c Code, _ *broker.Set, _ map[string]json.RawMessage, _ string) bootstrap.Launch {
		return bootstrap.Python(c.Args)
	}
	node := func(c Code, _ *broker.Set, _ map[string]json.RawMessage, _ string) bootstrap.Launch {
		return bootstrap.Node(c.Args)
	}
	return []language{
		{name: "python", sessions: true, launch: python},
		{name: "node", sessions: true, launch: node},
		{name: "sh", launch: shell},
		{name: "bash", launch: shell},
	}
}

func shell(c Code, tools *broker.Set, vars map[string]json.RawMessage, dir string) bootstrap.Launch {
	script := bootstrap.Script{Shell: c.Language, Source: c.Source, Args: c.Args, Vars: vars, Dir: dir}
	if tools != nil {
		script.Namespace = tools.Namespace
		for _, t := range tools.Tools() {
			script.Tools = append(script.Tools,
				bootstrap.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema, Output: t.Output})
		}
	}
	return bootstrap.Shell(script)
}
