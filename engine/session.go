package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// Session is an interpreter in a sandbox that lives on from run to run, and with
// it its variables, modules and open files. It starts with the first Run. When a
// run reaches its wall clock limit, is canceled or ends the interpreter, the
// session is over, and further runs are ErrClosed. A run that is refused, for
// its code or its tools, changes nothing. Its methods may be called concurrently;
// runs take turns.
type Session struct {
	Env []string // "NAME=value", added to the sandbox's environment; set before the first Run

	box      *Sandbox
	language string

	turn     chan struct{} // holds one: who runs or ends
	out, err tap           // of who has the turn

	mu       sync.Mutex
	cmd      *Cmd   // the interpreter; nil: not started
	starting func() // gives up starting it; nil: it is not being started
	closed   bool
	ended    Outcome // of the run that was its last; "": none was
}

// Session returns a session for code in "python" or "node". The caller closes
// it, or the sandbox.
func (s *Sandbox) Session(language string) *Session {
	return &Session{box: s, language: language, turn: make(chan struct{}, 1)}
}

// Run runs code in the session. Its Language may be left out; Env and Stdin are
// ErrInvalid: the interpreter has been started with its own, and reads nothing.
// The Result is as of Sandbox.Run, but for Usage, which has only Wall and what is
// of the whole sandbox, and an exception gives ExitCode 1, and exit(3) 3, although the interpreter lives
// on. What threads of an earlier run write meanwhile is in it, too. A Writer that
// blocks holds up Run no longer than a second or two, and ends the session.
func (s *Session) Run(ctx context.Context, c Code, tools *broker.Set) (*Result, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, s.failed(ctx.Err())
	}
	defer func() { <-s.turn }()
	next, err := s.command(ctx, c, tools)
	if err != nil {
		return nil, err // and the session is as it was
	}
	begin, before := time.Now(), s.box.box.measure()
	limit := int64(s.box.plan.limits.Output)
	stdout, stderr := keep(&next.Stdout, limit), keep(&next.Stderr, limit)
	out, errs := next.Stdout, next.Stderr
	// From before it is told on: it may not read, nor even start.
	stop := s.deadlines(ctx, next, orDefault(c.Wall, s.box.plan.limits.Wall))
	run, err := s.begin(ctx, next)
	if err != nil {
		stop()
		return s.notBegun(err)
	}
	stopOut, stopErr := s.out.read(out), s.err.read(errs)
	select {
	case <-run.Done():
	case <-s.cmd.ended:
	}
	stop()
	used := s.box.box.measure().since(before)
	res := &Result{
		Started: begin, Outcome: OK, Level: s.box.plan.Level, Dropped: slices.Clone(s.box.plan.Dropped),
		Usage: use(time.Since(begin), rusage{}, used), Events: used.events(),
	}
	answered := run.Answered()
	if !answered {
		res, err = s.over()
	}
	err = errors.Join(err, stopOut(), stopErr())
	switch {
	case !answered:
		err = errors.Join(err, s.out.close(), s.err.close())
	case errors.Is(err, errNotTaken): // a Writer has its stream
		err = errors.Join(err, s.end())
	}
	if answered {
		res.finishRun(run.End())
	}
	if res != nil {
		stdout.into(&res.Stdout, &res.TruncatedStdout)
		stderr.into(&res.Stderr, &res.TruncatedStderr)
	}
	return res, err
}

func (s *Session) failed(err error) error { return &Error{Op: "run code", Path: s.language, Err: err} }

// finishRun is for a run after which the interpreter lives on.
func (r *Result) finishRun(b wire.Report) {
	r.fill(b)
	if b.Error == nil {
		return
	}
	r.Outcome, r.ExitCode = Exit, 1
	if n, err := strconv.Atoi(b.Error.Message); err == nil && b.Error.Type == "SystemExit" {
		r.ExitCode = n & 0xff // as exit(3) has it
	}
	if b.Exceeded {
		r.Outcome = ToolCalls
	}
}

// command is the code as the session would start with it.
func (s *Session) command(ctx context.Context, c Code, tools *broker.Set) (*Cmd, error) {
	if c.Language == "" {
		c.Language = s.language
	}
	s.mu.Lock()
	closed, ended := s.closed, s.ended
	s.mu.Unlock()
	switch {
	case ended != "":
		return nil, s.failed(fmt.Errorf("session %w: its interpreter ended with a run that came to %s; Sandbox.Session starts another", ErrClosed, ended))
	case closed || s.box.ending():
		return nil, s.failed(ErrClosed)
	case !slices.ContainsFunc(languages(), func(l language) bool { return l.sessions && l.name == s.language }):
		return nil, s.failed(&UnsupportedError{Feature: "sessions in " + s.language, Remedy: "python and node have them"})
	case c.Language != s.language:
		return nil, s.failed(invalid("language %q in a session of %s", c.Language, s.language))
	case c.Stdin != nil || c.Env != nil:
		return nil, s.failed(invalid("standard input and environment are the session's"))
	case ctx.Err() != nil:
		return nil, s.failed(ctx.Err())
	}
	c.Env = s.Env
	return s.box.code(ctx, c, tools, true)
}

// keep has output kept for the Result that has nowhere else to go.
func keep(w *io.Writer, limit int64) *capture {
	if *w != nil {
		return nil
	}
	c := &capture{limit: limit}
	*w = c
	return c
}

// into puts what was kept into a Result; nothing was by a nil capture.
func (c *capture) into(b *[]byte, truncated *bool) {
	if c != nil {
		*b, *truncated = c.result()
	}
}

// begin gives the interpreter its next code, and starts it with the first.
func (s *Session) begin(ctx context.Context, next *Cmd) (*wire.Run, error) {
	if s.cmd != nil {
		run, err := s.cmd.link.Start(ctx, next.Tools, next.job)
		if err == nil {
			s.cmd.served = run
		}
		return run, err
	}
	var files [2]*os.File
	var err error
	for i, t := range []*tap{&s.out, &s.err} {
		if t.r, files[i], err = s.box.pipe(); err != nil {
			return nil, err
		}
		defer files[i].Close()
	}
	next.Stdout, next.Stderr = files[0], files[1]
	next.toolCtx, next.Wall = ctx, Unlimited
	err = next.Start()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = nil
	if err != nil {
		return nil, err
	}
	s.cmd = next
	return next.served, nil
}

// deadlines end the interpreter when a run takes too long, or the session is
// closed: there is no other way to be sure that it stops. They hold while it is
// being started, too, which a guest can delay.
func (s *Session) deadlines(ctx context.Context, next *Cmd, wall time.Duration) (stop func()) {
	kill := func(why Outcome) { s.cmd.kill(why) }
	if s.cmd == nil {
		life, end := context.WithCancel(context.Background())
		next.ctx = life
		kill = func(why Outcome) {
			next.cause.CompareAndSwap(nil, &why)
			end()
		}
		s.mu.Lock()
		s.starting = func() { kill(Lost) }
		if s.closed { // meanwhile
			s.starting()
		}
		s.mu.Unlock()
	}
	cancel := context.AfterFunc(ctx, func() { kill(endOf(ctx)) })
	if wall == Unlimited {
		return func() { cancel() }
	}
	t := time.AfterFunc(wall, func() { kill(Timeout) })
	return func() { t.Stop(); cancel() }
}

// notBegun is for a run that the interpreter has not got.
func (s *Session) notBegun(err error) (*Result, error) {
	switch {
	case s.cmd == nil: // as before
		return nil, errors.Join(s.failed(err), s.out.close(), s.err.close())
	case !errors.Is(err, broker.ErrClosed): // too long
		return nil, s.failed(fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	late := s.cmd.cause.Load() != nil
	res, werr := s.over()
	werr = errors.Join(werr, s.out.close(), s.err.close())
	if !late || res == nil {
		return nil, errors.Join(s.failed(errors.Join(ErrClosed, err)), werr)
	}
	res.fill(wire.Report{}) // that was of the run before
	return res, werr
}

// over is the end of an interpreter that has not answered.
func (s *Session) over() (*Result, error) {
	s.close()
	s.leave()
	res, err := s.cmd.Wait()
	if why := s.cmd.cause.Load(); res != nil && why != nil && *why == Lost {
		res.Outcome = Lost // by Close, to which it may have given way
	}
	if res != nil {
		s.mu.Lock()
		s.ended = res.Outcome
		s.mu.Unlock()
	}
	return res, err
}

// leave returns when the interpreter has ended. It has closed its channel, most
// likely by that; if not, there is no more talking to it.
func (s *Session) leave() {
	t := time.NewTimer(s.cmd.waitDelay())
	defer t.Stop()
	select {
	case <-s.cmd.ended:
	case <-t.C:
		_ = s.cmd.Signal(syscall.SIGKILL) // it may have ended
		<-s.cmd.ended
	}
}

func (s *Session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// end ends the interpreter, if there is one. It is called by who has the turn.
func (s *Session) end() error {
	s.close()
	var err error
	if s.cmd != nil {
		_ = s.cmd.link.Close() // a socket: nothing to lose
		s.leave()
		_, err = s.cmd.Wait()
	}
	return errors.Join(err, s.out.close(), s.err.close())
}

// Close ends the interpreter, and a run that is under way, which is Lost then.
// Processes that code has started live on with the sandbox. It is safe to call
// twice.
func (s *Session) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	cmd := s.cmd
	if s.starting != nil {
		s.starting()
	}
	s.mu.Unlock()
	if cmd != nil {
		lost := Lost
		cmd.cause.CompareAndSwap(nil, &lost)
		_ = cmd.link.Close() // whoever runs sees that
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if !first {
		return nil
	}
	return s.end()
}

// tap is a stream of the interpreter, which is read during runs only.
type tap struct{ r *os.File }

// errNotTaken is a Writer that blocks.
var errNotTaken = errors.New("pass on output: it is not taken")

// read copies to w, until the result is called: that returns when what had
// been written by then has been copied, or a second later. Its error is that of
// w, or errNotTaken.
func (t *tap) read(w io.Writer) (stop func() error) {
	r, done := t.r, make(chan struct{})
	to := &checked{w: w}
	go func() {
		defer close(done)
		_, err := io.Copy(to, r)
		if to.err != nil {
			_, err = io.Copy(io.Discard, r) // the interpreter is never held up
			w = io.Discard
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drain(w, r)
		}
	}()
	return func() error {
		_ = r.SetReadDeadline(time.Now()) // a pipe has deadlines
		patience := time.NewTimer(time.Second)
		defer patience.Stop()
		select {
		case <-done:
		case <-patience.C:
			return errNotTaken
		}
		_ = r.SetReadDeadline(time.Time{})
		if to.err != nil {
			return &Error{Op: "pass on output", Err: to.err}
		}
		return nil
	}
}

// close is safe to call twice.
func (t *tap) close() error {
	r := t.r
	t.r = nil
	if r == nil {
		return nil
	}
	return r.Close()
}
