package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// A Shell runs commands in a sandbox of its own. It starts the sandbox for the first
// command, and a new one after a timeout, an interruption or the loss of the sandbox.
// Spec.FS.Workspace persists across sandboxes; a private /tmp or /workspace does not. A
// command never runs outside a sandbox. The methods may be called concurrently; commands
// run one after another.
type Shell struct {
	eng    *engine.Engine
	spec   engine.Spec
	output int
	turn   chan struct{} // held while a command runs

	mu          sync.Mutex
	box         *engine.Sandbox // nil before the first command
	interrupted bool            // box was closed by Interrupt
	closed      bool
}

// NewShell returns a Shell and starts nothing. Of the Options only Output is used.
// Spec.Keep is ignored: a command that times out ends the sandbox. Each command gets its
// own sh, so cd and export do not carry over to the next command; files do. The caller
// closes the Shell.
func NewShell(eng *engine.Engine, spec engine.Spec, o Options) *Shell {
	spec.Keep = false
	return &Shell{eng: eng, spec: spec, output: int(o.withDefaults().Output), turn: make(chan struct{}, 1)}
}

// Reply reports the outcome of a command of a Shell.
type Reply struct {
	// Output is what the command wrote to both streams, in order, limited by
	// Options.Output, without newlines at the end.
	Output string
	// ExitCode is the command's exit code, or 128+N if signal N killed it. It is 0 if Run
	// returns an error.
	ExitCode int
}

// Run runs a command with the sandbox's sh, in the directory where commands start and
// with empty standard input. A command that fails is not an error. The timeout must be
// positive; it counts from when the earlier commands have ended. Match the error:
//
//   - *TimeoutError: the command timed out;
//   - ErrInterrupted: Interrupt, Close or the end of ctx stopped the command;
//   - *UnavailableError: there is no sandbox to run the command in, or ctx ended before
//     its turn; it has not run;
//   - engine.ErrClosed and not *UnavailableError: the sandbox ended while it ran;
//   - engine.ErrInvalid: the command or timeout is invalid.
//
// If the command has run, the Reply has its output even if there is an error. After the
// first two and the fourth, the next command gets a new sandbox. Reply.Text is what to
// show to a model.
func (s *Shell) Run(ctx context.Context, command string, timeout time.Duration) (Reply, error) {
	if timeout <= 0 {
		return Reply{}, because(fmt.Sprintf("invalid timeout %v: it must be positive", timeout), engine.ErrInvalid)
	}
	if command == "" {
		return Reply{}, because("invalid command: it is empty", engine.ErrInvalid)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return Reply{}, &UnavailableError{Err: ctx.Err()}
	}
	reply, err := s.run(ctx, command, timeout)
	if isUnavailable(err) && !s.wasClosed() && ctx.Err() == nil {
		if s.wasInterrupted() {
			return Reply{}, ErrInterrupted
		}
		// Most likely the sandbox has ended since the last command. This command has not
		// started, so try once more; any other problem occurs again.
		if err := s.end(); err != nil {
			return Reply{}, &UnavailableError{Err: err}
		}
		return s.run(ctx, command, timeout)
	}
	return reply, err
}

// run returns an UnavailableError if the command has not run.
func (s *Shell) run(ctx context.Context, command string, timeout time.Duration) (Reply, error) {
	box, err := s.sandbox(ctx)
	if err != nil {
		return Reply{}, &UnavailableError{Err: err}
	}
	said := newTranscript(s.output, nil)
	cmd := box.CommandContext(ctx, "sh", "-c", command)
	cmd.Wall = timeout
	both := output{said, Stdout}
	cmd.Stdout, cmd.Stderr = both, both
	res, err := cmd.Run()
	if res == nil {
		return Reply{}, &UnavailableError{Err: err}
	}
	reply := Reply{Output: said.text()}
	switch res.Outcome {
	case engine.OutcomeTimeout:
		err = &TimeoutError{After: timeout}
	case engine.OutcomeCanceled:
		err = ErrInterrupted
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", ErrInterrupted, cause)
		}
	case engine.OutcomeLost:
		if err = errLost; s.wasInterrupted() {
			err = ErrInterrupted
		}
	default:
		reply.ExitCode = res.ExitCode
		return reply, nil
	}
	_ = box.Close() // it is ending already: this waits until nothing is left of it
	return reply, err
}

// sandbox returns the running sandbox or starts one. The caller has the turn.
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
	switch { // since the call of Start
	case s.closed: // Close waits for the turn and then ends the sandbox
		return nil, errShellClosed
	case s.interrupted:
		return nil, ErrInterrupted
	}
	return box, nil
}

// Interrupt ends the sandbox and everything that runs in it. The next command gets a new
// sandbox.
func (s *Shell) Interrupt() error {
	s.mu.Lock()
	s.interrupted = true
	s.mu.Unlock()
	return s.end()
}

// end ends the sandbox and waits until nothing is left of it.
func (s *Shell) end() error {
	s.mu.Lock()
	box := s.box
	s.mu.Unlock()
	if box == nil {
		return nil
	}
	return box.Close()
}

// Close ends the sandbox and waits until nothing is left of it. No command runs
// afterwards. It is safe to call Close twice.
func (s *Shell) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.Interrupt()
	s.turn <- struct{}{} // a sandbox that was being started exists now
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
