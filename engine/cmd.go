package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/handoff"
)

// Cmd is a program to run in a sandbox, modelled on os/exec.Cmd. Set the
// fields, then call Run, or Start and Wait. Use it once, from one
// goroutine; Signal, SignalGroup and Resize may be called from others.
type Cmd struct {
	// Path is the program. Without a slash it is looked up in the sandbox's PATH.
	Path string
	// Args are its arguments, with the program's name first, as in os/exec. nil is
	// Path alone.
	Args []string
	// ExtraEnv is "NAME=value", added to the sandbox's environment. Nothing of the
	// host's environment is ever passed on.
	ExtraEnv []string
	// Dir is where it starts, inside. Relative paths, and "", are relative to Plan.Dir.
	Dir string

	// Stdin is what the command reads. nil is the null device. An *os.File that
	// is a pipe, a connected Unix stream socket or the null device is passed on
	// as it is; everything else is copied through a pipe, since a guest could do
	// more with a file, a terminal or another socket than read it. A directory
	// is ErrInvalid.
	Stdin io.Reader
	// Stdout and Stderr receive what it writes. nil keeps the first
	// Limits.Output bytes for the Result; anything else gets all of it, passed
	// on or copied as for Stdin. If both are the same, one goroutine at a time writes. A
	// Writer that blocks holds up Wait no longer than WaitDelay and one second.
	Stdout, Stderr io.Writer
	// ExtraFiles become descriptors 3, 4, …, or 4, 5, … with Tools; nil entries are
	// the null device. Each is a pipe, a connected Unix stream socket or the null
	// device; anything else is ErrInvalid, as a guest could do more with it. The
	// caller closes them. Commands from CodeContext accept none.
	ExtraFiles []*os.File

	// TTY gives the command a terminal of that size. Stdin is then copied to
	// it and its output to Stdout; Stderr must be nil.
	TTY *WindowSize

	// Tools are what the command may call on the host, by descriptor 3: TEGMEN_FD is
	// its number, and TEGMEN_TOKEN the token of the hello message. Package broker has the
	// protocol, package guest a client. nil gives it no descriptor.
	Tools *broker.Set

	// Wall bounds the time from Start on; 0 means Limits.Wall of the Spec.
	Wall time.Duration
	// WaitDelay bounds how long Wait waits for output that processes left
	// behind by the command hold open; 0 means 100 ms.
	WaitDelay time.Duration

	sandbox *Sandbox
	ctx     context.Context
	run     *run // nil: not started
	waited  bool // Wait has been called
	io      streams
	code    *codeJob // nil: a program
	channel channel
}

// WindowSize is the size of a terminal in characters.
type WindowSize struct {
	Rows, Cols uint16 // as TIOCSWINSZ takes them
}

// Run starts the command and waits for it. The error is what Start or Wait
// returns; a command that fails is a Result.
func (c *Cmd) Run() (*Result, error) {
	if err := c.start(); err != nil { // nobody asks when it has called execve, so nobody waits for that
		return nil, err
	}
	return c.Wait()
}

// Output is Run, for callers that only want what the command wrote to its standard
// output. A command that does not end with OutcomeOK is an *OutcomeError.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, c.failed("start command", invalid("Stdout is set, so there is no output to return"))
	}
	res, err := c.Run()
	if err != nil {
		return nil, err
	}
	return res.Stdout, c.outcome(res)
}

// CombinedOutput is Output with what the command wrote to its standard error, in
// the order in which it was written. Like Output it keeps Limits.Output bytes.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, c.failed("start command", invalid("Stdout or Stderr is set, so there is no output to return"))
	}
	both := &capture{limit: int64(c.sandbox.plan.limits.Output), discard: int64(c.sandbox.plan.limits.Discard),
		over: func() { c.run.kill(OutcomeOutput) }}
	c.Stdout = both
	if c.TTY == nil {
		c.Stderr = both
	}
	res, err := c.Run()
	if err != nil {
		return nil, err
	}
	out, cut := both.result()
	if res.Stdout, res.Streams.TruncatedStdout = out, cut; cut {
		res.Events = append(res.Events, Event{LimitOutput, 1, "more was written than is kept"})
	}
	return out, c.outcome(res)
}

func (c *Cmd) outcome(res *Result) error {
	if res.Outcome == OutcomeOK {
		return nil
	}
	return &OutcomeError{Name: c.Path, Result: res}
}

// Start returns once the command is running. Its error is an ExecError if there is no
// such program inside, ErrInvalid for a Cmd that contradicts itself, and ErrClosed
// if the sandbox has ended.
func (c *Cmd) Start() error {
	if err := c.start(); err != nil {
		return err
	}
	if err := c.run.await(); err != nil {
		c.abandon()
		c.run.setProcess(nil) // it cannot be waited for
		return c.failed("start command", err)
	}
	return nil
}

// start starts the command, and returns before it has called execve.
func (c *Cmd) start() error {
	if c.run != nil { // which goes on, with its deadlines and its tools
		return c.failed("start command", invalid("started twice"))
	}
	err := c.launch()
	if err != nil {
		c.abandon()
		return c.failed("start command", err)
	}
	c.io.start()
	return nil
}

// failed says what the command was doing. What could not be executed says so
// itself.
func (c *Cmd) failed(op string, err error) error {
	var exec *ExecError
	if errors.As(err, &exec) {
		return exec
	}
	return &Error{Op: op, Path: c.Path, Err: err}
}

func (c *Cmd) launch() error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.sandbox.ending() {
		return ErrClosed
	}
	c.run = &run{sandbox: c.sandbox}
	req, err := c.request()
	if err != nil {
		return err
	}
	c.sandbox.watch()
	return c.run.start(c.ctx, c.wall(), req)
}

// request is the command as the operating system's side takes it.
func (c *Cmd) request() (r box.Request, err error) {
	plan := c.sandbox.plan
	r = box.Request{Argv: c.Args, Dir: path.Join(plan.Dir, c.Dir), Terminal: c.TTY != nil}
	if len(r.Argv) == 0 {
		r.Argv = []string{c.Path}
	}
	if path.IsAbs(c.Dir) {
		r.Dir = c.Dir
	}
	r.Env = plan.Env
	if c.TTY != nil {
		r.Env = mergeEnv([]string{"TERM=xterm-256color"}, r.Env)
	}
	r.Env = mergeEnv(r.Env, c.ExtraEnv)
	r.Paths = searchPath(c.Path, r.Env)
	if r.Files, err = c.io.open(c); err != nil {
		return r, err
	}
	if c.Tools != nil {
		theirs, env, err := c.connect()
		if err != nil {
			return r, err
		}
		r.Files, r.Env = append(r.Files, theirs), mergeEnv(r.Env, env)
	}
	if c.code != nil {
		r.Texts, r.TextDir = c.code.texts, c.code.textDir
	}
	r.Files = append(r.Files, c.ExtraFiles...)
	return r, nil
}

// searchPath lists what a command's name may stand for, as execvp(3) does it.
func searchPath(name string, env []string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	var paths []string
	for _, kv := range env {
		if dirs, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, dir := range strings.Split(dirs, ":") {
				if dir == "" {
					dir = "."
				}
				paths = append(paths, path.Join(dir, name))
			}
		}
	}
	if len(paths) == 0 {
		paths = []string{"/usr/bin/" + name, "/bin/" + name}
	}
	return paths
}

// abandon gives up on a command that did not start.
func (c *Cmd) abandon() {
	c.io.abort()
	c.channel.close()
}

func (c *Cmd) waitDelay() time.Duration {
	if c.WaitDelay != 0 {
		return c.WaitDelay
	}
	return 100 * time.Millisecond
}

func (c *Cmd) check() error {
	errs := []error{validEnv("", c.ExtraEnv)}
	for _, s := range append([]string{c.Path, c.Dir}, c.Args...) {
		if strings.ContainsRune(s, 0) {
			errs = append(errs, invalid("%q: contains a NUL byte", s))
		}
	}
	if c.Path == "" {
		errs = append(errs, invalid("no program to run"))
	}
	if c.Wall < 0 || c.WaitDelay < 0 {
		errs = append(errs, invalid("a negative time"))
	}
	if c.TTY != nil && c.Stderr != nil {
		errs = append(errs, invalid("a terminal has no separate standard error"))
	}
	if len(c.ExtraFiles) > 0 && c.code != nil {
		errs = append(errs, invalid("code takes no extra files"))
	}
	for i, f := range c.ExtraFiles {
		if f == nil {
			continue
		}
		if safe, err := handoff.Safe(f); err != nil {
			errs = append(errs, err)
		} else if !safe {
			errs = append(errs, invalid("extra file %d, %s, is neither a pipe nor a connected Unix stream socket: "+
				"a guest could do more with it than read and write", i, f.Name()))
		}
	}
	return errors.Join(errs...)
}

// Signal sends a signal to the command, which must have been started. Its
// error is os.ErrProcessDone if it has ended.
func (c *Cmd) Signal(sig syscall.Signal) error { return c.signal(sig, false) }

// SignalGroup is Signal for the command's process group, as Ctrl-C in a terminal
// does; for a shell that includes what it waits for.
func (c *Cmd) SignalGroup(sig syscall.Signal) error { return c.signal(sig, true) }

func (c *Cmd) signal(sig syscall.Signal, group bool) error {
	if c.run == nil {
		return invalid("signal before start")
	}
	p := c.run.running()
	if p == nil {
		return invalid("signal before start")
	}
	return p.Signal(sig, group)
}

// Resize tells the command's terminal its new size.
func (c *Cmd) Resize(w WindowSize) error {
	if c.io.master == nil {
		return invalid("resize without a terminal")
	}
	return handoff.Resize(c.io.master, box.WindowSize(w))
}

// Wait returns when the command has ended and its output has been read. An
// error is the engine's, or that of a Writer that did not take the output; a
// Result comes with it if there is one.
func (c *Cmd) Wait() (*Result, error) {
	r := c.run
	if r == nil || r.process == nil {
		return nil, c.failed("wait", invalid("not started"))
	}
	if c.waited {
		return nil, c.failed("wait", invalid("waited for already"))
	}
	c.waited = true
	return c.wait()
}

// wait is Wait, which a Session may call again.
func (c *Cmd) wait() (*Result, error) {
	r := c.run
	if err := r.wait(); err != nil {
		c.abandon()
		return nil, c.failed("start command", err)
	}
	res := &Result{Start: c.sandbox.startInfo(r.began, r.timing)}
	res.Streams.Detached = !c.io.wait(c.waitDelay())
	c.io.collect(res)
	report := c.channel.hangUp(c.waitDelay())
	res.Code = report.code
	res.Refused = refusals(r.exit.Refused)
	var err error
	if res.Held, err = c.sandbox.newlyHeld(); err != nil {
		return res, c.failed("wait", err)
	}
	if r.err != nil {
		return res, c.failed("wait", r.err)
	}
	cpu := c.sandbox.plan.limits.CPUTime
	res.Usage = use(r.at.Sub(r.began), r.exit)
	res.judge(r.exit, r.why(), c.sandbox.ending(), cpu)
	if report.exceeded && res.Outcome == OutcomeExit {
		res.Outcome = OutcomeToolCalls
	}
	res.endEvents(r.exit, r.why(), cpu, c.sandbox.overBudget())
	if err := c.io.failure(); err != nil {
		return res, c.failed("pass on output", err)
	}
	return res, nil
}

// startInfo is that of a command in the sandbox.
func (s *Sandbox) startInfo(at time.Time, t box.Timing) StartInfo {
	return StartInfo{At: at, Timing: Timing(t), Level: s.plan.Level, Dropped: slices.Clone(s.plan.Dropped)}
}

func refusals(list []box.Refusal) (out []Refusal) {
	for _, r := range list {
		out = append(out, Refusal(r))
	}
	return out
}
