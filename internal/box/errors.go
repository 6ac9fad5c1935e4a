package box

import (
	"errors"
	"fmt"
)

// ErrInvalid is matched by what the caller asked for and cannot be;
// ErrClosed by the use of a sandbox that is ending.
var (
	ErrInvalid = errors.New("invalid")
	ErrClosed  = errors.New("closed")
)

// ErrNotFile is what Host.Lookup finds if it is neither a file nor a directory.
var ErrNotFile = errors.New("neither a file nor a directory")

// ErrShort is matched by the error of a probe that failed because the machine has
// run out of something that it does have.
var ErrShort = errors.New("short of resources")

// ExecError is a program that cannot be executed. It unwraps to the errno.
type ExecError struct {
	Name     string // as it was asked for
	NotFound bool   // it does not exist, here or anywhere in PATH
	Err      error  // the cause
}

func (e *ExecError) Error() string { return fmt.Sprintf("exec %q: %v", e.Name, e.Err) }

func (e *ExecError) Unwrap() error { return e.Err }

// InvalidError is an ErrInvalid with a message.
type InvalidError struct {
	Problem string // "not a directory"; it may say what to do as well
}

func (e *InvalidError) Error() string { return ErrInvalid.Error() + ": " + e.Problem }

// Is makes every InvalidError an ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Invalid returns an InvalidError.
func Invalid(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}
