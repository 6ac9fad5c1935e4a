package engine

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Errors that callers match with errors.Is. Each is returned wrapped with what
// was being done.
var (
	// ErrInvalid is a Spec, a Cmd or a Code that contradicts itself or the machine.
	ErrInvalid = box.ErrInvalid
	// ErrUnsupported is matched by every UnsupportedError.
	ErrUnsupported = errors.ErrUnsupported
	// ErrClosed is the use of an Engine, a Sandbox or a Session that has ended.
	ErrClosed = box.ErrClosed
	// ErrChanged is a path of the host that is not what it was when the plan
	// was made.
	ErrChanged = rootfs.ErrChanged
	// ErrBusy is a Commit while a command runs.
	ErrBusy = errors.New("a command is running")
)

// Error is an operation of the engine that went wrong.
type Error struct {
	Op   string // "start sandbox", "compile"
	Path string // what it was about; may be empty
	Err  error  // the cause
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.Op, e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// UnsupportedError names a feature that this machine lacks or forbids.
type UnsupportedError struct {
	Feature string // "user namespaces"
	Since   string // the first kernel that has it, "5.12"; "" where that is not the reason
	Remedy  string // what to do about it; may be empty
	Err     error  // what the attempt gave; may be nil

	Field string // what in the Spec asks for it, as InvalidError.Field; may be empty
	Value string // the field's value, if Feature names it: "1.5" of "limit cpus=1.5"; may be empty
}

func (e *UnsupportedError) Error() string {
	u := launch.UnsupportedError{Feature: e.Feature, Since: e.Since, Remedy: e.Remedy, Err: e.Err}
	return u.Error()
}

// Is makes every UnsupportedError an ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

func (e *UnsupportedError) Unwrap() error { return e.Err }

// StepError is a system call that failed while a sandbox or a command was being
// set up. It unwraps to the errno.
type StepError struct {
	What  string        // what the step was for: "mount tmpfs"
	Path  string        // on what; may be empty
	Call  string        // the system call: "mount"
	Errno syscall.Errno // what the call returned
}

func (e *StepError) Error() string { return (*launch.StepError)(e).Error() }

func (e *StepError) Unwrap() error { return e.Errno }

// ExecError is a command that could not be executed: its program does not
// exist inside, or is not executable. It unwraps to the errno.
type ExecError struct {
	Name     string // as it was asked for
	NotFound bool   // it does not exist, here or anywhere in PATH
	Err      error  // the cause; errors.Is finds the errno in it
}

func (e *ExecError) Error() string {
	if e.NotFound {
		return fmt.Sprintf("exec %q: not found in the sandbox", e.Name)
	}
	return fmt.Sprintf("exec %q: %v", e.Name, e.Err)
}

func (e *ExecError) Unwrap() error { return e.Err }

// OutcomeError is a command that did not end with OutcomeOK, where an error is
// wanted.
type OutcomeError struct {
	Name   string  // the program, as it was asked for
	Result *Result // how it ended
}

func (e *OutcomeError) Error() string {
	switch r := e.Result; r.Outcome {
	case OutcomeExit:
		return fmt.Sprintf("%s: exit status %d", e.Name, r.ExitCode)
	case OutcomeSignal:
		return e.Name + ": " + r.Signal.String()
	default:
		return e.Name + ": " + string(r.Outcome)
	}
}

// fromBox wraps an error of the operating system's side, so that errors.As finds
// this package's types in it.
func fromBox(err error) error {
	if err == nil {
		return nil
	}
	return &boxError{err}
}

type boxError struct{ err error }

func (e *boxError) Error() string { return e.err.Error() }

func (e *boxError) Unwrap() error { return e.err }

// As finds the types of this package in it.
func (e *boxError) As(target any) bool {
	switch t := target.(type) {
	case **InvalidError:
		if i := new(box.InvalidError); errors.As(e.err, &i) {
			*t = &InvalidError{Problem: i.Problem, Err: e.err}
			return true
		}
	case **UnsupportedError:
		if u := new(launch.UnsupportedError); errors.As(e.err, &u) {
			*t = &UnsupportedError{Feature: u.Feature, Since: u.Since, Remedy: u.Remedy, Err: u.Err}
			return true
		}
	case **StepError:
		if s := new(launch.StepError); errors.As(e.err, &s) {
			*t = (*StepError)(s)
			return true
		}
	case **ExecError:
		if x := new(box.ExecError); errors.As(e.err, &x) {
			*t = (*ExecError)(x)
			return true
		}
	}
	return false
}

// Is makes what the operating system's side does not support an ErrUnsupported.
func (e *boxError) Is(target error) bool {
	return target == ErrUnsupported && errors.Is(e.err, launch.ErrUnsupported)
}
