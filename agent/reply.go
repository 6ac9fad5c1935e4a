package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// ErrInterrupted means that Interrupt, Close or the end of the context stopped a Shell's
// command. Its sandbox has ended.
var ErrInterrupted = errors.New("interrupted")

// TimeoutError means that a Shell's command timed out. Its sandbox has ended. It wraps
// context.DeadlineExceeded.
type TimeoutError struct {
	After time.Duration // the timeout
}

// Error names the timeout.
func (e *TimeoutError) Error() string { return "timed out after " + asSeconds(e.After) + "s" }

// Unwrap returns context.DeadlineExceeded.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// UnavailableError means that a Shell had no sandbox for a command, which has not run.
type UnavailableError struct {
	Err error // why the sandbox could not be started or used
}

// Error names the cause.
func (e *UnavailableError) Error() string { return fmt.Sprintf("sandbox unavailable: %v", e.Err) }

// Unwrap returns e.Err.
func (e *UnavailableError) Unwrap() error { return e.Err }

var (
	errShellClosed = because("shell is closed", engine.ErrClosed)
	errLost        = because("sandbox lost: it ended while the command ran", engine.ErrClosed)
)

func isUnavailable(err error) bool {
	var e *UnavailableError
	return errors.As(err, &e)
}

// Text returns the results of Shell.Run as text for a model: a line that says how the
// command ended, and its output, if any.
//
//	exit N                                 the command ended
//	timed out after Ns (sandbox removed)   *TimeoutError
//	interrupted (sandbox removed)          ErrInterrupted
//	error: …; no host shell fallback       the sandbox was lost or is unavailable
//	error: …                               any other error
func (r Reply) Text(err error) string {
	var timeout *TimeoutError
	var unavailable *UnavailableError
	head := ""
	switch {
	case err == nil:
		head = fmt.Sprintf("exit %d", r.ExitCode)
	case errors.As(err, &unavailable):
		head = fmt.Sprintf("error: sandbox unavailable (%v); no host shell fallback", unavailable.Err)
	case errors.As(err, &timeout):
		head = timeout.Error() + " (sandbox removed)"
	case errors.Is(err, ErrInterrupted):
		head = "interrupted (sandbox removed)"
	case errors.Is(err, engine.ErrClosed):
		head = "error: sandbox lost (it ended while the command ran); no host shell fallback"
	default:
		head = fmt.Sprintf("error: %v", err)
	}
	return strings.TrimSuffix(head+"\n"+r.Output, "\n")
}
