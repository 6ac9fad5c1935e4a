package engine

import (
	"cmp"
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
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/handoff"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// Session is an interpreter in a sandbox that lives on from run to run, and with
// it its variables, modules and open files. It starts with the first RunCode. If a run
// reaches its wall clock limit, is canceled or ends the interpreter, the session is
// over, and further runs are ErrClosed. A run that is refused, for its code or its
// tools, changes nothing. Its methods may be called concurrently; runs take turns.
type Session struct {
	box      *Sandbox
	language string
	extraEnv []string

	turn     chan struct{} // holds one while a run, or the end, is under way
	out, err tap           // of the run whose turn it is

	mu       sync.Mutex
	cmd      *Cmd   // the interpreter; nil: not started
	starting func() // gives up starting it; nil: it is not being started
	closed   bool
	ended    Outcome // of the run that was its last; "": none was
}

// Session returns a session for code in "python" or "node", whose interpreter has
// extraEnv, "NAME=value", added to the sandbox's environment. The caller closes it,
// or the sandbox.
func (s *Sandbox) Session(language string, extraEnv ...string) *Session {
	return &Session{box: s, language: language, extraEnv: extraEnv, turn: make(chan struct{}, 1)}
}

// RunCode runs code in the session. Its Language may be left out; ExtraEnv and Stdin
// are ErrInvalid: the interpreter has its own environment, and reads nothing. The
// Result is as of Sandbox.RunCode, except that Usage has only Wall and what is of
// the whole sandbox, and that an exception gives ExitCode 1, and exit(3) 3, although
// the interpreter lives on. It includes what threads of an earlier run write
// meanwhile. A Writer that blocks holds up RunCode no longer than two seconds, and ends
// the session.
func (s *Session) RunCode(ctx context.Context, c Code, tools *broker.Set) (*Result, error) {
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
	begin, before := time.Now(), s.box.box.Usage()
	limit := int64(s.box.plan.limits.Output)
	stdout, stderr := keep(&next.Stdout, limit), keep(&next.Stderr, limit)
	out, errs := next.Stdout, next.Stderr
	// Before it is sent: a guest may not read, nor even start.
	stop := s.deadlines(ctx, next, cmp.Or(c.Wall, s.box.plan.limits.Wall))
	served, err := s.begin(ctx, next)
	if err != nil {
		stop()
		return s.notBegun(err)
	}
	stopOut, stopErr := s.out.read(out), s.err.read(errs)
	select {
	case <-served.Done():
	case <-s.cmd.run.reaped:
	}
	stop()
	used := s.box.box.Usage().Since(before)
	res := &Result{
		Start: s.box.startInfo(begin, box.Timing{}), Outcome: OutcomeOK,
		Usage: use(time.Since(begin), box.Exit{Used: used}), Events: eventsOf(used),
	}
	answered := served.Answered()
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
		res.finishRun(reportOf(served.End()))
		var herr error
		res.Held, herr = s.box.newlyHeld()
		err = errors.Join(err, herr)
	}
	if res != nil {
		stdout.into(&res.Stdout, &res.Streams.TruncatedStdout)
		stderr.into(&res.Stderr, &res.Streams.TruncatedStderr)
	}
	return res, err
}

func (s *Session) failed(err error) error { return &Error{Op: "run code", Path: s.language, Err: err} }

// finishRun completes the Result of a run after which the interpreter lives on.
func (r *Result) finishRun(b report) {
	r.Code = b.code
	if b.code.Error == nil {
		return
	}
	r.Outcome, r.ExitCode = OutcomeExit, 1
	if n, err := strconv.Atoi(b.code.Error.Message); err == nil && b.code.Error.Type == "SystemExit" {
		r.ExitCode = n & 0xff // as exit(3) has it
	}
	if b.exceeded {
		r.Outcome = OutcomeToolCalls
	}
}

// command is the code as the session would start with it.
func (s *Session) command(ctx context.Context, c Code, tools *broker.Set) (*Cmd, error) {
	c.Language = cmp.Or(c.Language, s.language)
	s.mu.Lock()
	closed, ended := s.closed, s.ended
	s.mu.Unlock()
	switch {
	case ended != "":
		return nil, s.failed(fmt.Errorf("session %w: its interpreter ended with a run whose outcome was %s; "+
			"Sandbox.Session starts another", ErrClosed, ended))
	case closed || s.box.ending():
		return nil, s.failed(ErrClosed)
	case !slices.ContainsFunc(languages(), func(l language) bool { return l.sessions && l.name == s.language }):
		return nil, s.failed(&UnsupportedError{Feature: "sessions in " + s.language, Remedy: "python and node have them"})
	case c.Language != s.language:
		return nil, s.failed(invalid("language %q in a session of %s", c.Language, s.language))
	case c.Stdin != nil || c.ExtraEnv != nil:
		return nil, s.failed(invalid("standard input and environment are the session's"))
	case ctx.Err() != nil:
		return nil, s.failed(ctx.Err())
	}
	c.ExtraEnv = s.extraEnv
	p, err := c.prepare(tools)
	if err != nil {
		return nil, err
	}
	return s.box.prepared(ctx, c, p, tools, true), nil
}

// begin gives the interpreter its next code, and starts it with the first.
func (s *Session) begin(ctx context.Context, next *Cmd) (*wire.Run, error) {
	if s.cmd != nil {
		err := s.cmd.channel.serve(ctx, next.Tools, next.code.job)
		return s.cmd.channel.run, err
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
	next.code.toolContext, next.Wall = ctx, UnlimitedTime
	err = next.Start()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = nil
	if err != nil {
		return nil, err
	}
	s.cmd = next
	return next.channel.run, nil
}

// deadlines end the interpreter if a run takes too long, or the session is closed:
// there is no other way to be sure that it stops. They hold while it is being
// started as well, which a guest can delay.
func (s *Session) deadlines(ctx context.Context, next *Cmd, wall time.Duration) (stop func()) {
	if s.cmd != nil {
		return killAfter(ctx, wall, s.cmd.run.kill)
	}
	life, end := context.WithCancelCause(context.Background())
	next.ctx = life
	kill := func(why Outcome) { end(&endError{why}) }
	s.mu.Lock()
	s.starting = func() { kill(OutcomeLost) }
	if s.closed { // meanwhile
		s.starting()
	}
	s.mu.Unlock()
	return killAfter(ctx, wall, kill)
}

// notBegun is for a run that the interpreter has not got.
func (s *Session) notBegun(err error) (*Result, error) {
	switch {
	case s.cmd == nil: // as before
		return nil, errors.Join(s.failed(err), s.out.close(), s.err.close())
	case !errors.Is(err, broker.ErrClosed): // too long
		return nil, s.failed(invalidBecause("", err))
	}
	late := s.cmd.run.why() != ""
	res, werr := s.over()
	werr = errors.Join(werr, s.out.close(), s.err.close())
	if !late || res == nil {
		return nil, errors.Join(s.failed(errors.Join(ErrClosed, err)), werr)
	}
	res.Code = CodeResult{} // that was of the run before
	return res, werr
}

// over is the end of an interpreter that has not answered.
func (s *Session) over() (*Result, error) {
	s.close()
	s.leave()
	res, err := s.cmd.wait()
	if res != nil && s.cmd.run.why() == OutcomeLost {
		res.Outcome = OutcomeLost // by Close, to which it may have given way
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
	case <-s.cmd.run.reaped:
	case <-t.C:
		_ = s.cmd.Signal(syscall.SIGKILL) // it may have ended
		<-s.cmd.run.reaped
	}
}

func (s *Session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// end ends the interpreter, if there is one. The caller has the turn.
func (s *Session) end() error {
	s.close()
	var err error
	if s.cmd != nil {
		s.cmd.channel.close()
		s.leave()
		_, err = s.cmd.wait()
	}
	return errors.Join(err, s.out.close(), s.err.close())
}

// Close ends the interpreter, and a run that is under way, whose outcome is
// OutcomeLost then. Processes that code has started live on with the sandbox. It is
// safe to call twice.
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
		cmd.run.blame(OutcomeLost)
		cmd.channel.close() // a run that is under way notices
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
var errNotTaken = errors.New("pass on output: the Writer blocks")

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
			handoff.Drain(w, r)
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
		_ = r.SetReadDeadline(time.Time{}) // likewise
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
