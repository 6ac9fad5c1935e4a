package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Cmd is a program to run in a sandbox, in the image of os/exec.Cmd. Set the
// fields, then call Run, or Start and Wait. It is used once, and by one
// goroutine, except for Signal and Resize.
type Cmd struct {
	// Name is the program. Without a slash it is looked for in PATH, inside.
	Name string
	Args []string // arguments, without the program's name
	// Env is "NAME=value", added to the sandbox's environment. Nothing of the
	// host's environment is ever passed on.
	Env []string
	// Dir is where it starts, inside. Relative paths start from Plan.Dir,
	// which "" stands for.
	Dir string

	// Stdin is what the command reads. nil is the null device. An *os.File that
	// is a pipe, a connected Unix stream socket or the null device is passed on
	// as it is; everything else is copied through a pipe, since a guest could do
	// more with a file, a terminal or another socket than read it. A directory
	// is ErrInvalid.
	Stdin io.Reader
	// Stdout and Stderr receive what it writes. nil keeps the first
	// Limits.Output bytes for the Result; anything else gets all of it, in the
	// ways of Stdin. When both are the same, one goroutine at a time writes. A
	// Writer that blocks holds up Wait no longer than WaitDelay, and a second.
	Stdout, Stderr io.Writer

	// TTY gives the command a terminal of that size. Stdin is then copied to
	// it and its output to Stdout; Stderr has to be nil.
	TTY *WindowSize

	// Wall bounds the time from Start on; 0 means Limits.Wall of the Spec.
	Wall time.Duration
	// WaitDelay bounds how long Wait waits for output that processes left
	// behind by the command hold open; 0 means 100 ms.
	WaitDelay time.Duration

	sandbox  *Sandbox
	ctx      context.Context
	process  *process
	whole    bool // from start to end in one: Run
	started  time.Time
	cause    atomic.Pointer[Outcome] // why the engine killed it
	timing   Timing
	io       streams
	killing  sync.Mutex
	released bool          // under killing: there is nothing left to kill
	ended    chan struct{} // closed when it has been reaped; nil: Wait reaps
	end      struct {
		status syscall.WaitStatus
		usage  syscall.Rusage
		at     time.Time
		err    error
	}
	undo []func() // when it has ended: timers
}

// WindowSize is the size of a terminal in characters.
type WindowSize struct{ Rows, Cols uint16 }

// execRequest is what a machine needs to start a command.
type execRequest struct {
	paths, argv, env []string
	dir              string
	files            []*os.File // become 0, 1, 2, …; nil is the null device
	plan             *Plan      // of the sandbox: limits
	terminal         bool       // files[0] becomes the controlling terminal
	marked           bool       // its descendants can be told apart
}

// Run starts the command and waits for it. The error is what Start or Wait
// return; a command that fails is a Result.
func (c *Cmd) Run() (*Result, error) {
	// Nobody asks when it has called execve, so nobody waits for that.
	c.whole = true
	if err := c.Start(); err != nil {
		return nil, err
	}
	return c.Wait()
}

// Output is Run, for those who only want what the command wrote to its
// standard output. A command that does not end OK is an *OutcomeError.
func (c *Cmd) Output() ([]byte, error) {
	res, err := c.Run()
	if err != nil {
		return nil, err
	}
	if res.Outcome != OK {
		return res.Stdout, &OutcomeError{Name: c.Name, Result: res}
	}
	return res.Stdout, nil
}

// Start returns when the command runs. Its error is an ExecError when there is
// no such program inside, ErrInvalid for a Cmd that contradicts itself, and
// ErrClosed when the sandbox has ended.
func (c *Cmd) Start() error {
	err := c.start()
	if err == nil {
		return nil
	}
	c.finish()
	c.io.abort()
	return c.startError(err)
}

func (c *Cmd) startError(err error) error {
	var exec *ExecError
	if errors.As(err, &exec) {
		return exec
	}
	return &Error{Op: "start command", Path: c.Name, Err: err}
}

func (c *Cmd) start() error {
	if c.process != nil {
		return invalid("started twice")
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.sandbox.ending() {
		return ErrClosed
	}
	plan := c.sandbox.plan
	r := execRequest{
		argv: append([]string{c.Name}, c.Args...), dir: plan.Dir,
		plan: plan, terminal: c.TTY != nil, marked: plan.Spec.Keep,
	}
	if path.IsAbs(c.Dir) {
		r.dir = c.Dir
	} else {
		r.dir = path.Join(r.dir, c.Dir)
	}
	env := plan.Env
	if c.TTY != nil {
		env = mergeEnv([]string{"TERM=xterm-256color"}, env)
	}
	r.env = mergeEnv(env, c.Env)
	r.paths = searchPath(c.Name, r.env)
	var err error
	if r.files, err = c.io.open(c, plan.limits.Output); err != nil {
		return err
	}
	c.started = time.Now()
	if err := c.sandbox.engine.begin(); err != nil {
		return err
	}
	c.process, err = c.sandbox.box.exec(r)
	c.sandbox.engine.starting.Done()
	if err != nil {
		if c.sandbox.ending() && !errors.Is(err, ErrClosed) {
			err = errors.Join(ErrClosed, err)
		}
		return err
	}
	// Before waiting for its execve: a guest can delay that for ever.
	c.deadlines()
	if !c.whole {
		if err := c.process.started(); err != nil {
			return errors.Join(err, c.release())
		}
		c.timing = c.process.timing()
		// A sandbox that is told to end waits for its commands to be reaped,
		// so that cannot depend on when, or whether, someone calls Wait.
		c.ended = make(chan struct{})
		go func() {
			c.reap()
			close(c.ended)
		}()
	}
	c.io.start()
	return nil
}

// reap waits for the process to end, and remembers how.
func (c *Cmd) reap() {
	c.end.status, c.end.usage, c.end.err = c.process.wait()
	c.end.at = time.Now()
	c.finish()
	c.end.err = errors.Join(c.end.err, c.release())
}

// release gives up what a kill would need; one that is under way ends first.
func (c *Cmd) release() error {
	c.killing.Lock()
	defer c.killing.Unlock()
	c.released = true
	return c.process.release()
}

func (c *Cmd) check() error {
	errs := []error{validEnv(c.Env)}
	for _, s := range append([]string{c.Name, c.Dir}, c.Args...) {
		if strings.ContainsRune(s, 0) {
			errs = append(errs, invalid("%q: contains a NUL byte", s))
		}
	}
	if c.Name == "" {
		errs = append(errs, invalid("no program to run"))
	}
	if c.Wall < 0 || c.WaitDelay < 0 {
		errs = append(errs, invalid("a negative time"))
	}
	if c.TTY != nil && c.Stderr != nil {
		errs = append(errs, invalid("a terminal has no separate standard error"))
	}
	return errors.Join(errs...)
}

func (c *Cmd) deadlines() {
	wall := orDefault(c.Wall, c.sandbox.plan.limits.Wall)
	if wall != Unlimited {
		t := time.AfterFunc(wall, func() { c.kill(Timeout) })
		c.undo = append(c.undo, func() { t.Stop() })
	}
	stop := context.AfterFunc(c.ctx, func() { c.kill(Canceled) })
	c.undo = append(c.undo, func() { stop() })
}

func (c *Cmd) finish() {
	for _, f := range c.undo {
		f()
	}
	c.undo = nil
}

// kill ends the command for a reason that goes into its Result; the first one
// counts.
func (c *Cmd) kill(why Outcome) {
	c.cause.CompareAndSwap(nil, &why)
	if !c.sandbox.plan.Spec.Keep {
		c.sandbox.kill()
		return
	}
	c.killing.Lock()
	defer c.killing.Unlock()
	if !c.released {
		_ = c.process.killTree() // what is left is ending already
	}
}

// Signal sends a signal to the command, which must have been started. Its
// error is os.ErrProcessDone when it has ended.
func (c *Cmd) Signal(sig syscall.Signal) error {
	if c.process == nil {
		return invalid("signal before start")
	}
	return c.process.signal(sig)
}

// Resize tells the command's terminal its new size.
func (c *Cmd) Resize(w WindowSize) error {
	if c.io.master == nil {
		return invalid("resize without a terminal")
	}
	return resize(c.io.master, w)
}

// Wait returns when the command has ended and its output has been read. An
// error is the engine's, or that of a Writer that did not take the output; a
// Result comes with it if there is one.
func (c *Cmd) Wait() (*Result, error) {
	if c.process == nil {
		return nil, &Error{Op: "wait", Path: c.Name, Err: invalid("not started")}
	}
	if c.ended != nil {
		<-c.ended
	} else {
		c.reap()
	}
	status, usage, err := c.end.status, c.end.usage, c.end.err
	if c.whole {
		if err := c.process.setupError(); err != nil {
			c.io.abort()
			return nil, c.startError(err)
		}
		c.timing = c.process.timing()
	}
	res := &Result{Started: c.started, Timing: c.timing, Dropped: slices.Clone(c.sandbox.plan.Dropped)}
	res.Detached = !c.io.wait(orDefault(c.WaitDelay, 100*time.Millisecond))
	c.io.collect(res)
	if err != nil {
		return res, &Error{Op: "wait", Path: c.Name, Err: err}
	}
	res.Usage = Usage{
		Wall: c.end.at.Sub(c.started), User: time.Duration(usage.Utime.Nano()), System: time.Duration(usage.Stime.Nano()),
		MaxRSS: maxRSS(usage),
	}
	res.judge(status, c)
	if err := c.io.failure(); err != nil {
		return res, &Error{Op: "pass on output", Path: c.Name, Err: err}
	}
	return res, nil
}

// judge attributes the end of a command to what is known to have caused it.
func (r *Result) judge(status syscall.WaitStatus, c *Cmd) {
	r.ExitCode = status.ExitStatus()
	if status.Signaled() {
		r.Signal = status.Signal()
		r.ExitCode = 128 + int(r.Signal)
	}
	cause := c.cause.Load()
	killed := r.Signal == syscall.SIGKILL
	switch {
	case killed && cause != nil:
		r.Outcome = *cause
	case killed && c.sandbox.ending():
		r.Outcome = Lost
	case r.usedUp(c.sandbox.plan.limits.CPUTime):
		r.Outcome = CPU
	case r.Signal != 0:
		r.Outcome = Signaled
	case r.ExitCode != 0:
		r.Outcome = Exit
	default:
		r.Outcome = OK
	}
}

// usedUp tells whether the kernel ended the command at its limit of CPU time:
// by SIGXCPU, or by SIGKILL a second later. The kernel acts on what it counts by
// ticks, and reports what it measures, which on a busy machine has been seen to
// be a fifth less.
func (r *Result) usedUp(limit time.Duration) bool {
	if limit == Unlimited {
		return false
	}
	used := r.Usage.User + r.Usage.System
	switch r.Signal {
	case syscall.SIGXCPU:
		return used >= limit/2
	case syscall.SIGKILL:
		return used >= (limit+time.Second)/4*3
	}
	return false
}

// OutcomeError is a command that did not end OK, where an error is wanted.
type OutcomeError struct {
	Name   string
	Result *Result
}

func (e *OutcomeError) Error() string {
	s := e.Name + ": " + string(e.Result.Outcome)
	switch e.Result.Outcome {
	case Exit:
		s = e.Name + ": exit status " + strconv.Itoa(e.Result.ExitCode)
	case Signaled:
		s = e.Name + ": " + e.Result.Signal.String()
	}
	return s
}
