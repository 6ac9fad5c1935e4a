package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// Language is "python", "node", "sh" or "bash"; the interpreter is looked for
	// in the PATH of the sandbox.
	Language string
	Source   string
	// Vars are variables that are set before the code runs. Each can be encoded as
	// JSON and has a name that is an identifier in most languages.
	Vars map[string]any
	Args []string // its arguments: sys.argv, process.argv, "$@"
	Env  []string // "NAME=value", added to the sandbox's environment
	// Wall bounds the run; 0 means Limits.Wall of the Spec.
	Wall time.Duration
	// Stdin is what the code reads; nil is nothing. See Cmd.Stdin.
	Stdin io.Reader
	// Stdout and Stderr receive what it writes, as it comes; nil keeps it for the
	// Result. See Cmd.Stdout.
	Stdout, Stderr io.Writer
	// Check is asked before anything is started, and its error is Run's. It is a
	// convenience that spares a run and tells whoever wrote the code sooner; what
	// the code may do is for the sandbox to decide. Package check has two. nil
	// checks nothing.
	Check func(source string) error
}

// Run runs code in a sandbox of its own, made on an Engine of its own; see
// Engine.Run. Whoever runs more than one keeps an Engine.
func Run(ctx context.Context, s Spec, c Code, tools *broker.Set) (_ *Result, err error) {
	e, err := Open(Options{NoTemplates: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return e.Run(ctx, s, c, tools)
}

// Run runs code in a sandbox of its own, and returns when nothing is left of
// that. tools may be nil. Code that fails is a Result; see Sandbox.Run.
func (e *Engine) Run(ctx context.Context, s Spec, c Code, tools *broker.Set) (_ *Result, err error) {
	p, err := c.prepare(tools)
	if err != nil {
		return nil, err // before anything is started
	}
	box, err := e.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	return box.prepared(ctx, c, p, tools, false).Run()
}

// Run runs code in the sandbox: files that it leaves are there for the next one,
// its variables are not; see Session for those. Its wall clock limit covers the
// tools that it calls: their contexts are done when it ends in any way. The
// Result has what the code returned, how it failed, what it wrote until then,
// and its calls. The error is ErrInvalid for code or tools that cannot be used,
// and an ExecError where the sandbox has no such interpreter.
func (s *Sandbox) Run(ctx context.Context, c Code, tools *broker.Set) (*Result, error) {
	cmd, err := s.CodeContext(ctx, c, tools)
	if err != nil {
		return nil, err
	}
	return cmd.Run()
}

// CodeContext returns the command that runs code in the sandbox, for those who
// signal it, or start it and wait for it apart. Its Result and errors are as of
// Sandbox.Run.
func (s *Sandbox) CodeContext(ctx context.Context, c Code, tools *broker.Set) (*Cmd, error) {
	return s.code(ctx, c, tools, false)
}

// Validate says what keeps the code from being run with these tools, as far as
// that can be told without a sandbox; it asks Check, too. tools may be nil.
func (c Code) Validate(tools *broker.Set) error {
	_, err := c.prepare(tools)
	return err
}

// code returns the command that runs it.
func (s *Sandbox) code(ctx context.Context, c Code, tools *broker.Set, stateful bool) (*Cmd, error) {
	p, err := c.prepare(tools)
	if err != nil {
		return nil, err
	}
	return s.prepared(ctx, c, p, tools, stateful), nil
}

func (s *Sandbox) prepared(ctx context.Context, c Code, p prepared, tools *broker.Set, stateful bool) *Cmd {
	dir := s.textDir()
	launch := p.launch(dir)
	cmd := s.CommandContext(ctx, launch.Argv[0], launch.Argv[1:]...)
	cmd.Env = append(slices.Clone(c.Env), launch.Env...)
	cmd.Wall = c.Wall
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.Tools, cmd.texts, cmd.textDir = tools, launch.Files, dir
	if cmd.Tools == nil {
		cmd.Tools = new(broker.Set)
	}
	cmd.job = wire.Job{Language: c.Language, Stateful: stateful, Brief: !launch.Hello}
	if launch.Hello { // who does not ask has it, and may be slow to read
		cmd.job.Code, cmd.job.Vars, cmd.job.Args = c.Source, p.vars, c.Args
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
			return p, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if c.Wall < 0 {
		return p, invalid("a negative time")
	}
	p.vars = make(map[string]json.RawMessage, len(c.Vars))
	for name, v := range c.Vars {
		if !bootstrap.Identifier(name) {
			return p, invalid("variable %q: not a name: letters, digits and _, and no digit first", name)
		}
		if p.vars[name], err = json.Marshal(v); err != nil {
			return p, fmt.Errorf("%w: variable %q: %w", ErrInvalid, name, err)
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
	return []language{{"python", true, python}, {"node", true, node}, {"sh", false, shell}, {"bash", false, shell}}
}

func shell(c Code, tools *broker.Set, vars map[string]json.RawMessage, dir string) bootstrap.Launch {
	script := bootstrap.Script{Shell: c.Language, Source: c.Source, Args: c.Args, Vars: vars, Dir: dir}
	if tools != nil {
		script.Namespace = tools.Namespace
		for _, t := range tools.Tools() {
			script.Tools = append(script.Tools, bootstrap.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema, Output: t.Output})
		}
	}
	return bootstrap.Shell(script)
}
