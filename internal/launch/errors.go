package launch

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrStopped is returned by a Spawner that has been closed.
var ErrStopped = errors.New("launch: spawner is closed")

// A StepError is a system call of a Program that failed in the new process.
type StepError struct {
	What  string // what the step was for: "mount tmpfs"
	Path  string // on what, may be empty
	Call  string // the system call: "mount"
	Errno syscall.Errno
}

func (e *StepError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %s: %v", e.What, e.Call, e.Errno)
	}
	return fmt.Sprintf("%s %q: %s: %v", e.What, e.Path, e.Call, e.Errno)
}

// Unwrap is the errno, so that errors.Is(err, syscall.EPERM) holds.
func (e *StepError) Unwrap() error { return e.Errno }

// ErrUnsupported is matched by every UnsupportedError.
var ErrUnsupported = errors.New("not supported here")

// An UnsupportedError names something the kernel lacks or forbids.
type UnsupportedError struct {
	Feature string // "clone3"
	Since   string // first kernel that has it: "5.3"; empty when it is a matter of permission
	Remedy  string // what to do, may be empty
	Err     error  // what the attempt gave, may be nil
}

func (e *UnsupportedError) Error() string {
	s := e.Feature + ": " + ErrUnsupported.Error()
	if e.Err != nil {
		s += " (" + e.Err.Error() + ")"
	}
	if e.Since != "" {
		s += "; first kernel: " + e.Since
	}
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// Is makes every UnsupportedError an ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// Unwrap is what the attempt gave.
func (e *UnsupportedError) Unwrap() error { return e.Err }
