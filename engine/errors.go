package engine

import (
	"errors"
	"fmt"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Errors that callers match with errors.Is. Each is returned wrapped with what
// was being done.
var (
	// ErrInvalid is a Spec or a Cmd that contradicts itself or the machine.
	ErrInvalid = errors.New("invalid")
	// ErrUnsupported is matched by every UnsupportedError.
	ErrUnsupported = launch.ErrUnsupported
	// ErrClosed is use of an Engine or Sandbox that has ended.
	ErrClosed = errors.New("closed")
	// ErrChanged is a path of the host that is not what it was when the plan
	// was made.
	ErrChanged = rootfs.ErrChanged
)

// UnsupportedError names a feature that this machine lacks or forbids, the
// first kernel that has it, and what to do.
type UnsupportedError = launch.UnsupportedError

// StepError is a system call that failed while a sandbox or a command was
// being set up. It unwraps to the errno.
type StepError = launch.StepError

// Error is an operation of the engine that went wrong.
type Error struct {
	Op   string // "start sandbox", "compile"
	Path string // what it was about, may be empty
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.Op, e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ExecError is a command that could not be executed: its program does not
// exist inside, or is not executable. It unwraps to the errno.
type ExecError struct {
	Name     string // as it was asked for
	NotFound bool   // it does not exist, here or anywhere in PATH
	Err      error
}

func (e *ExecError) Error() string {
	if e.NotFound {
		return fmt.Sprintf("exec %q: not found in the sandbox", e.Name)
	}
	return fmt.Sprintf("exec %q: %v", e.Name, e.Err)
}

func (e *ExecError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
