package launch

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrStopped is returned by a Spawner that has been closed.
var ErrStopped = errors.New("launch: spawner is closed")

// StartProcess is the StepError.What of a clone that failed, so that there was no
// new process.
const StartProcess = "start process"

// FeatureClone3 is the UnsupportedError.Feature of a missing or refused clone3.
const FeatureClone3 = "clone3"

// A StepError is a system call of a Program that failed in the new process, or
// the clone that should have made the process.
type StepError struct {
	What  string        // the step's purpose: "mount tmpfs", StartProcess
	Path  string        // the path it acted on; may be empty
	Call  string        // the system call: "mount"
	Errno syscall.Errno // never 0
}

func (e *StepError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %s: %v", e.What, e.Call, e.Errno)
	}
	return fmt.Sprintf("%s %q: %s: %v", e.What, e.Path, e.Call, e.Errno)
}

// Unwrap returns the errno, so that errors.Is(err, syscall.EPERM) holds.
func (e *StepError) Unwrap() error { return e.Errno }

// ErrUnsupported is matched by every UnsupportedError. It matches the standard
// library's errors.ErrUnsupported.
var ErrUnsupported error = unsupported{}

type unsupported struct{}

func (unsupported) Error() string { return "not supported here" }

func (unsupported) Is(target error) bool { return target == errors.ErrUnsupported }

// An UnsupportedError names something the kernel lacks or forbids.
type UnsupportedError struct {
	Feature string // FeatureClone3
	Since   string // the first kernel that has it: "5.3"; empty if only permission is missing
	Remedy  string // what the user can do; may be empty
	Err     error  // the error of the attempt; may be nil
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

// Is reports whether target is ErrUnsupported, this package's or package errors'.
func (e *UnsupportedError) Is(target error) bool { return errors.Is(ErrUnsupported, target) }

// Unwrap returns the error of the attempt.
func (e *UnsupportedError) Unwrap() error { return e.Err }
