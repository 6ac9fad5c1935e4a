package engine

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/wire"
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

	// Tools are what the command may call on the host, by descriptor 3: its
	// number stands in TEGMEN_FD, and TEGMEN_TOKEN is what to say in hello. Package
	// broker has the protocol, package guest a client. nil gives it no descriptor.
	Tools *broker.Set

	// Wall bounds the time from Start on; 0 means Limits.Wall of the Spec.
	Wall time.Duration
	// WaitDelay bounds how long Wait waits for output that processes left
	// behind by the command hold open; 0 means 100 ms.
	WaitDelay time.Duration

	sandbox  *Sandbox
	ctx      context.Context
	process  process
	whole    bool // from start to end in one: Run
	started  time.Time
	cause    atomic.Pointer[Outcome] // why the engine killed it
	timing   Timing
	io       streams
	job      wire.Job   // answers its hello
	texts    []string   // become 4, 5, …, or files of those names
	textDir  string     // where; "": descriptors
	link     *wire.Link // to the command; nil: it has no tools
	served   *wire.Run
	toolCtx  context.Context // of tools; nil: ctx
	killing  sync.Mutex
	begun    bool          // under killing: it has been started, or could not be
	released bool          // under killing: there is nothing left to kill
	ended    chan struct{} // closed when it has been reaped; nil: Wait reaps
	before   reading       // what its sandbox had used when it started
	end      struct {
		status  syscall.WaitStatus
		usage   rusage
		used    reading
		hostOOM bool // the kernel has killed processes of the machine meanwhile
		at      time.Time
		err     error
	}
	undo []func() // when it has ended: timers
}

// WindowSize is the size of a terminal in characters.
type WindowSize struct{ Rows, Cols uint16 }

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
	if c.process != nil { // which goes on, with its deadlines and its tools
		return c.startError(invalid("started twice"))
	}
	err := c.start()
	if err == nil {
		return nil
	}
	c.finish()
	c.abandon()
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
		plan: plan, terminal: c.TTY != nil, marked: plan.Spec.Keep, texts: c.textDir,
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
	if r.files, err = c.io.open(c, plan.limits); err != nil {
		return err
	}
	channel, err := c.connect(&r.env)
	if err != nil {
		return err
	}
	r.files = append(r.files, channel...)
	c.started = time.Now()
	c.sandbox.commands.RLock() // until release
	if err := c.sandbox.engine.begin(); err != nil {
		c.sandbox.commands.RUnlock()
		return err
	}
	if c.before, err = c.sandbox.enter(c); err != nil {
		c.sandbox.engine.starting.Done()
		c.sandbox.commands.RUnlock()
		return err
	}
	// Before it starts: a guest can delay its execve for ever.
	c.deadlines()
	p, err := c.sandbox.box.exec(r)
	c.sandbox.engine.starting.Done()
	c.setProcess(p)
	if err != nil {
		c.sandbox.leave(c, reading{})
		c.sandbox.commands.RUnlock()
		if (c.sandbox.ending() || c.sandbox.box.dying()) && !errors.Is(err, ErrClosed) {
			err = errors.Join(ErrClosed, err)
		}
		return err
	}
	if !c.whole {
		if err := c.process.started(); err != nil {
			c.sandbox.leave(c, reading{})
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

// setProcess is what a kill takes from then on. One that has come before is made
// up for.
func (c *Cmd) setProcess(p process) {
	c.killing.Lock()
	defer c.killing.Unlock()
	c.process, c.begun = p, true
	if p != nil && c.cause.Load() != nil {
		c.killNow()
	}
}

// startPatience is how long after its deadline a command may take to be started:
// then it is a guest that holds it up, and the sandbox ends.
const startPatience = time.Second

// reap waits for the process to end, and remembers how.
func (c *Cmd) reap() {
	c.end.status, c.end.usage, c.end.err = c.process.wait()
	c.end.at = time.Now()
	now := c.sandbox.box.measure()
	c.end.used = now.since(c.before)
	if c.end.used.by == byWatchdog {
		// It last looked some time before the end.
		c.end.used.cpu = max(c.end.used.cpu, c.end.usage.user+c.end.usage.system)
	}
	c.end.hostOOM = c.end.status.Signaled() && c.end.status.Signal() == syscall.SIGKILL && c.sandbox.box.hostOOM()
	c.sandbox.leave(c, now)
	c.finish()
	c.end.err = errors.Join(c.end.err, c.release())
}

// release gives up what a kill would need; one that is under way ends first.
func (c *Cmd) release() error {
	c.killing.Lock()
	defer c.killing.Unlock()
	c.released = true
	c.sandbox.commands.RUnlock()
	return c.process.release()
}

func (c *Cmd) waitDelay() time.Duration { return orDefault(c.WaitDelay, 100*time.Millisecond) }

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
	c.accountCPU()
	stop := context.AfterFunc(c.ctx, func() { c.kill(endOf(c.ctx)) })
	c.undo = append(c.undo, func() { stop() })
}

func (c *Cmd) finish() {
	for _, f := range c.undo {
		f()
	}
	c.undo = nil
}

// kill ends the command for a reason that goes into its Result; the first one
// counts. One that is just being started ends when it has been: it is a Result,
// too.
func (c *Cmd) kill(why Outcome) {
	c.cause.CompareAndSwap(nil, &why)
	c.killing.Lock()
	defer c.killing.Unlock()
	if c.begun {
		c.killNow()
		return
	}
	time.AfterFunc(startPatience, func() {
		c.killing.Lock()
		defer c.killing.Unlock()
		if !c.begun {
			c.sandbox.kill()
		}
	})
}

// killNow is kill with c.killing held.
func (c *Cmd) killNow() {
	switch {
	case !c.sandbox.plan.Spec.Keep:
		c.sandbox.kill()
	case c.process != nil && !c.released:
		_ = c.process.killTree() // what is left is ending already
	}
}

// Signal sends a signal to the command, which must have been started. Its
// error is os.ErrProcessDone when it has ended.
func (c *Cmd) Signal(sig syscall.Signal) error {
	if c.process == nil {
		return invalid("signal before start")
	}
	return c.process.signal(sig, false)
}

// SignalGroup is Signal for the command's process group, which a terminal's keys
// signal: for a shell, also what it waits for.
func (c *Cmd) SignalGroup(sig syscall.Signal) error {
	if c.process == nil {
		return invalid("signal before start")
	}
	return c.process.signal(sig, true)
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
			c.abandon()
			return nil, c.startError(err)
		}
		c.timing = c.process.timing()
	}
	res := &Result{Started: c.started, Timing: c.timing, Level: c.sandbox.plan.Level, Dropped: slices.Clone(c.sandbox.plan.Dropped)}
	res.Detached = !c.io.wait(c.waitDelay())
	c.io.collect(res)
	exceeded := c.hangUp(res)
	res.Refused = c.process.refused()
	if err != nil {
		return res, &Error{Op: "wait", Path: c.Name, Err: err}
	}
	res.Usage = use(c.end.at.Sub(c.started), usage, c.end.used)
	res.judge(status, c, c.end.used)
	if exceeded && res.Outcome == Exit {
		res.Outcome = ToolCalls
	}
	res.limitEvents(c, c.end.used)
	if err := c.io.failure(); err != nil {
		return res, &Error{Op: "pass on output", Path: c.Name, Err: err}
	}
	return res, nil
}
