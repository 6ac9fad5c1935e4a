package engine

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/handoff"
)

// streams are the standard streams of a command: what it gets, and the
// goroutines that copy.
type streams struct {
	theirs []*os.File // ends for the command, closed once it has them
	ours   []*os.File // our ends of pipes
	far    []*os.File // what StdinPipe and its like put into Cmd: the command's, or with a terminal our own, to copy
	copies []func()   // run by start
	master *os.File   // of its terminal, among ours

	sandbox        *Sandbox
	reads          []*os.File // what is copied from, among ours
	reading        sync.WaitGroup
	stdout, stderr *capture // kept for the Result

	mu  sync.Mutex
	err error // why output was lost; under mu
}

// open returns the files that become 0, 1 and 2.
func (s *streams) open(c *Cmd) ([]*os.File, error) {
	l := c.sandbox.plan.limits
	kept := func() *capture {
		return &capture{limit: int64(l.Output), discard: int64(l.Discard), over: func() { c.run.kill(OutcomeOutput) }}
	}
	s.sandbox = c.sandbox
	out, err := c.Stdout, c.Stderr
	if out == nil {
		s.stdout = kept()
		out = s.stdout
	}
	if c.TTY != nil {
		return s.terminal(c, out)
	}
	s.theirs, s.far = append(s.theirs, s.far...), nil
	if err == nil {
		s.stderr = kept()
		err = s.stderr
	}
	stdin, e := s.input(c.Stdin)
	if e != nil {
		return nil, e
	}
	stdout, e := s.output(out)
	if e != nil {
		return nil, e
	}
	if same(c.Stdout, c.Stderr) {
		return []*os.File{stdin, stdout, stdout}, nil
	}
	stderr, e := s.output(err)
	if e != nil {
		return nil, e
	}
	return []*os.File{stdin, stdout, stderr}, nil
}

// same reports whether both streams go to one place: then they go through one
// pipe, so that order is kept and writes do not overlap.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }() // comparing types that cannot be compared
	return a != nil && a == b
}

func (s *streams) input(r io.Reader) (*os.File, error) {
	if r == nil {
		return nil, nil
	}
	if f, ok := r.(*os.File); ok {
		if safe, err := handoff.Safe(f); err != nil || safe {
			return s.sandbox.handOver(f, err)
		}
	}
	read, write, err := s.sandbox.pipe()
	if err != nil {
		return nil, err
	}
	s.theirs, s.ours = append(s.theirs, read), append(s.ours, write)
	s.copies = append(s.copies, func() {
		go func() {
			_, _ = io.Copy(write, r) // the command need not read all of it
			_ = write.Close()
		}()
	})
	return read, nil
}

// handOver lets a guest open a stream of the caller's again, as /dev/stdin: a pipe is
// given to its user, as runc does it, and the null device is the sandbox's own (nil).
func (s *Sandbox) handOver(f *os.File, err error) (*os.File, error) {
	switch {
	case err != nil:
		return nil, err
	case handoff.IsNull(f):
		return nil, nil
	case s.engine.host.Become:
		return f, handoff.GivePipe(f, s.plan.config.IDs.HostUID, s.plan.config.IDs.HostGID)
	}
	return f, nil
}

// pipe makes a pipe that belongs to the guest's user, so that a guest can open its
// own output again: /dev/stdout, /dev/stderr.
func (s *Sandbox) pipe() (read, write *os.File, err error) {
	read, write, err = os.Pipe()
	if err == nil && s.engine.host.Become {
		if err = write.Chown(s.plan.config.IDs.HostUID, s.plan.config.IDs.HostGID); err != nil {
			err = errors.Join(err, read.Close(), write.Close())
		}
	}
	return read, write, err
}

func (s *streams) output(w io.Writer) (*os.File, error) {
	if f, ok := w.(*os.File); ok {
		if safe, err := handoff.Safe(f); err != nil || safe {
			return s.sandbox.handOver(f, err)
		}
	}
	read, write, err := s.sandbox.pipe()
	if err != nil {
		return nil, err
	}
	s.theirs, s.ours = append(s.theirs, write), append(s.ours, read)
	s.read(read, w)
	return write, nil
}

// read copies until the end, even if w fails: the command is never blocked by what
// its reader does.
func (s *streams) read(from *os.File, w io.Writer) {
	s.reads = append(s.reads, from)
	s.reading.Add(1)
	s.copies = append(s.copies, func() {
		go func() {
			defer s.reading.Done()
			to := &checked{w: w}
			_, err := io.Copy(to, from)
			if to.err != nil {
				s.lost(to.err)
				_, err = io.Copy(io.Discard, from)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				handoff.Drain(w, from)
			}
			s.closeFar(w)
		}()
	})
}

// checked remembers why writing failed: io.Copy does not say whose error it
// returns.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(p []byte) (n int, err error) {
	n, err = c.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	c.err = err
	return n, err
}

// lost records that output could not be passed on; the first reason counts.
func (s *streams) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// failure is why output was lost, or nil.
func (s *streams) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *streams) terminal(c *Cmd, out io.Writer) ([]*os.File, error) {
	master, slave, err := c.sandbox.box.Terminal(box.WindowSize(*c.TTY))
	if err != nil {
		return nil, err
	}
	s.master = master
	s.theirs, s.ours = append(s.theirs, slave), append(s.ours, master)
	if c.Stdin != nil {
		s.copies = append(s.copies, func() {
			go func() {
				_, _ = io.Copy(master, c.Stdin) // ends with either side
				s.closeFar(c.Stdin)
			}()
		})
	}
	s.read(master, out)
	return []*os.File{slave, slave, slave}, nil
}

// start begins to copy: the command has its ends.
func (s *streams) start() {
	s.closeTheirs()
	for _, f := range s.copies {
		f()
	}
	s.copies = nil
}

func (s *streams) closeTheirs() {
	for _, f := range s.theirs {
		_ = f.Close() // a pipe's end: nothing to lose
	}
	s.theirs = nil
}

// closeFar closes the far end of a pipe, if it is one, when nothing more is copied.
func (s *streams) closeFar(end any) {
	for _, f := range s.far {
		if end == f {
			_ = f.Close() // a pipe's end: nothing to lose
		}
	}
}

// abort gives up on a command that did not start.
func (s *streams) abort() {
	s.theirs = append(s.theirs, s.far...)
	s.closeTheirs()
	s.closeOurs()
}

func (s *streams) closeOurs() {
	for _, f := range s.ours {
		_ = f.Close() // the command's end is what counted
	}
	s.ours = nil
}

// wait returns when all output has been read, or after the delay; it reports
// whether all has been read.
func (s *streams) wait(delay time.Duration) bool {
	done := make(chan struct{})
	go func() {
		s.reading.Wait()
		close(done)
	}()
	t := time.NewTimer(delay)
	defer t.Stop()
	complete := true
	select {
	case <-done:
	case <-t.C:
		complete = false
		for _, f := range s.reads {
			_ = f.SetReadDeadline(time.Now()) // it is a pipe or a terminal, which have deadlines
		}
		// What was written is there; it is a Writer that blocks, if anything.
		t.Reset(max(delay, time.Second))
		select {
		case <-done:
		case <-t.C:
		}
	}
	s.closeOurs()
	return complete
}

func (s *streams) collect(r *Result) {
	if s.stdout != nil {
		r.Stdout, r.Streams.TruncatedStdout = s.stdout.result()
	}
	if s.stderr != nil {
		r.Stderr, r.Streams.TruncatedStderr = s.stderr.result()
	}
}

// capture keeps the first bytes it is given and drops the rest, up to a limit,
// at which over is called.
type capture struct {
	limit   int64
	discard int64
	over    func() // nil: nothing
	buf     bytes.Buffer
	more    bool
}

func (c *capture) Write(p []byte) (int, error) {
	keep := p
	if room := c.limit - int64(c.buf.Len()); int64(len(keep)) > room {
		keep, c.more = keep[:room], true
	}
	c.buf.Write(keep)
	if c.discard -= int64(len(p) - len(keep)); c.discard < 0 && c.over != nil {
		c.over()
		c.over = nil
	}
	return len(p), nil
}

// result is what was kept; a character that was cut in two is left out.
func (c *capture) result() ([]byte, bool) {
	b := c.buf.Bytes()
	if c.more {
		for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
			if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					b = b[:len(b)-i]
				}
				break
			}
		}
	}
	return b, c.more
}

// keep captures output for the Result that has nowhere else to go; nil if it has.
func keep(w *io.Writer, limit int64) *capture {
	if *w != nil {
		return nil
	}
	c := &capture{limit: limit}
	*w = c
	return c
}

// into puts what was kept into a Result; a nil capture kept nothing.
func (c *capture) into(b *[]byte, truncated *bool) {
	if c != nil {
		*b, *truncated = c.result()
	}
}
