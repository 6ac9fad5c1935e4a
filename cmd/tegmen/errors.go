package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// inFlags are the words for flags where a message says what to do.
var inFlags = strings.NewReplacer("(degrade ", "(--degrade ", "(allow write ", "(--allow-write ",
	"(mount)", "(-v DIR:DIR:ro)")

// message is what went wrong, in one line and in the words of flags and files.
func message(err error) string {
	text := err.Error()
	name := flagOf
	if b := new(blamed); errors.As(err, &b) {
		name = b.nameOf
	}
	var e *engine.Error
	if errors.As(err, &e) && (errors.Is(e.Err, engine.ErrInvalid) || errors.Is(e.Err, engine.ErrUnsupported)) {
		cause := strings.Join(problems(e.Err, name), "; ")
		if e.Op == "start command" { // the other operations are the engine's, not the user's
			cause = strings.TrimSuffix(e.Error(), e.Err.Error()) + cause
		}
		text = strings.Replace(text, e.Error(), cause, 1)
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

// problems are the errors that errors.Join has joined, without the sentinel's word. name
// names a field of the Spec.
func problems(err error, name func(field string) string) (lines []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			lines = append(lines, problems(err, name)...)
		}
		return lines
	}
	text := err.Error()
	var invalid *engine.InvalidError
	var unsupported *engine.UnsupportedError
	switch {
	case errors.As(err, &invalid):
		text = problem(invalid, name(invalid.Field))
	case errors.As(err, &unsupported) && unsupported.Value != "":
		renamed := *unsupported
		renamed.Feature = name(unsupported.Field) + "=" + unsupported.Value
		text = renamed.Error()
	}
	return []string{inFlags.Replace(text)}
}

// problem is an InvalidError with another name for its field.
func problem(e *engine.InvalidError, name string) string {
	if e.Value != "" {
		name = strings.TrimLeft(name+" "+e.Value, " ")
	}
	text := e.Problem
	if name != "" {
		text = name + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return text
}

// flagError is an error of package flag, which writes --name as -name.
func flagError(err error) string {
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		return "unknown flag " + dashed(name)
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return dashed(name) + " needs a value"
	}
	return err.Error()
}

// codeOf is the exit code for an error: who was at fault.
func codeOf(err error) int {
	var exec *engine.ExecError
	switch {
	case errors.As(err, &exec) && exec.NotFound:
		return exitNotFound
	case errors.As(err, &exec):
		return exitNotExec
	}
	return exitEngine
}
