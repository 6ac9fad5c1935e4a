package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// A Shell runs commands in a sandbox of its own, which it starts when the first
// command comes, and again after a timeout or when the sandbox was lost. What
// is in Spec.FS.Workspace survives that, a private /tmp or /workspace does not.
// A command is never run anywhere else. Its methods may be called concurrently;
// commands run one after another.
type Shell struct {
	eng    *engine.Engine
	spec   engine.Spec
	output int
	turn   chan struct{} // held while a command runs

	mu          sync.Mutex
	box         *engine.Sandbox // nil: none
	interrupted bool            // box was closed by Interrupt
	closed      bool
}

// NewShell makes a Shell and starts nothing. Spec.Keep has no effect: a command
// that takes too long ends the sandbox. Of the Options, Output counts. Each
// command has an sh of its own: cd and export do not survive from call to call,
// files do.
func NewShell(eng *engine.Engine, spec engine.Spec, o Options) *Shell {
	spec.Keep = false
	return &Shell{eng: eng, spec: spec, output: int(o.withDefaults().Output), turn: make(chan struct{}, 1)}
}

// Run runs a command by the sandbox's sh, where its commands start, with nothing
// to read. What it writes to both outputs comes in one, in order, bounded as
// Options.Output says. The answer is a line and the output, if any:
//
//	exit N                                 the command ended; 128+N by signal N
//	timed out after Ns (sandbox removed)   the output until then follows
//	interrupted (sandbox removed)          Interrupt, Close or the end of ctx
//	error: sandbox lost (…); no host shell fallback
//	error: sandbox unavailable (…); no host shell fallback
//	error: invalid …                       a timeout or command that cannot be
//
// After the second to the fourth, the next command gets a new sandbox. A timeout
// has to be positive; it counts from when the command's turn has come.
func (s *Shell) Run(ctx context.Context, command string, timeout time.Duration) string {
	if timeout <= 0 {
		return fmt.Sprintf("error: invalid timeout %v: it has to be positive", timeout)
	}
	if command == "" {
		return "error: invalid command: it is empty"
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
	text, err := s.run(ctx, command, timeout)
	if err != nil && !s.wasClosed() && ctx.Err() == nil {
		if s.wasInterrupted() {
			return interrupted
		}
		// Most likely the sandbox has ended since the last command; this one has
		// not begun. What else is wrong is so in a new one too.
		if err := s.end(); err != nil {
			return unavailable(err)
		}
		text, err = s.run(ctx, command, timeout)
	}
	if err != nil {
		return unavailable(err)
	}
	return text
}

func unavailable(why error) string {
	return fmt.Sprintf("error: sandbox unavailable (%v); no host shell fallback", why)
}

const interrupted = "interrupted (sandbox removed)"

var errShellClosed = errors.New("shell is closed")

// run returns an error when the command has not run.
func (s *Shell) run(ctx context.Context, command string, timeout time.Duration) (string, error) {
	box, err := s.sandbox(ctx)
	if err != nil {
		return "", err
	}
	said := newTranscript(s.output, nil)
	cmd := box.CommandContext(ctx, "sh", "-c", command)
	cmd.Wall = timeout
	both := output{said, Stdout}
	cmd.Stdout, cmd.Stderr = both, both
	res, err := cmd.Run()
	if res == nil {
		return "", err
	}
	var head string
	how := res.Outcome
	switch how {
	case engine.Timeout:
		head = "timed out after " + asSeconds(timeout) + "s (sandbox removed)"
	case engine.Canceled:
		head = interrupted
	case engine.Lost:
		head = "error: sandbox lost (it ended while the command ran); no host shell fallback"
		if s.wasInterrupted() {
			head = interrupted
		}
	default:
		head = fmt.Sprintf("exit %d", res.ExitCode)
	}
	if how == engine.Timeout || how == engine.Canceled || how == engine.Lost {
		_ = box.Close() // it is ending already: this waits until nothing is left of it
	}
	return strings.TrimSuffix(head+"\n"+said.text(), "\n"), nil
}

// sandbox is the one there is, or a new one. It is called by who has the turn.
func (s *Shell) sandbox(ctx context.Context) (*engine.Sandbox, error) {
	s.mu.Lock()
	box, closed := s.box, s.closed
	s.interrupted = false
	s.mu.Unlock()
	if closed {
		return nil, errShellClosed
	}
	if box != nil {
		select {
		case <-box.Done():
		default:
			return box, nil
		}
	}
	box, err := s.eng.Start(ctx, s.spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.box = box
	switch { // while it started
	case s.closed: // Close waits for the turn, and ends it then
		return nil, errShellClosed
	case s.interrupted:
		return nil, errors.New(interrupted)
	}
	return box, nil
}

// Interrupt ends the sandbox with whatever runs in it. The next command gets a
// new one.
func (s *Shell) Interrupt() error {
	s.mu.Lock()
	s.interrupted = true
	s.mu.Unlock()
	return s.end()
}

// end returns when nothing is left of the sandbox.
func (s *Shell) end() error {
	s.mu.Lock()
	box := s.box
	s.mu.Unlock()
	if box == nil {
		return nil
	}
	return box.Close()
}

// Close ends the sandbox, for good: nothing of it is left when Close returns,
// and no command runs afterwards. It is safe to call twice.
func (s *Shell) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.Interrupt()
	s.turn <- struct{}{} // what was being started is there now
	defer func() { <-s.turn }()
	return errors.Join(err, s.Interrupt())
}

func (s *Shell) wasClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Shell) wasInterrupted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.interrupted
}
