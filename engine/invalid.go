package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/protect"
)

// InvalidError is an ErrInvalid, and names the field of the Spec that it is about.
type InvalidError struct {
	// Field is its path in the Spec's JSON, "fs.mounts[1].target", or "vars" for Code.Vars;
	// "" if the error is about neither.
	Field   string
	Value   string // the value, or the part of it that is wrong, as messages show it; may be empty
	Problem string // "not a directory"; it may say what to do as well
	Line    int    // of the JSON that it was read from, counted from 1; 0: from none
	Err     error  // what the attempt to use the value gave; may be nil
}

func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString(ErrInvalid.Error() + ": ")
	subject := subjectOf(e.Field)
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
		subject = e.Field
	}
	if e.Value != "" {
		subject = strings.TrimLeft(subject+" "+e.Value, " ")
	}
	if subject != "" {
		b.WriteString(subject + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// Is makes every InvalidError an ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func (e *InvalidError) Unwrap() error { return e.Err }

// subjectOf is what messages call a field of the Spec.
func subjectOf(field string) string {
	name, _, _ := strings.Cut(field, "[")
	group, rest, _ := strings.Cut(name, ".")
	switch {
	case name == "env":
		return "environment"
	case name == "vars":
		return "variable"
	case name == "fs.mounts":
		return "mount"
	case group == "limits":
		return "limit " + string(limitOf(rest))
	case group == "fs", group == "seatbelt":
		name = rest
	}
	return strings.NewReplacer("_", " ", ".", " ").Replace(name)
}

// invalid is an InvalidError about no field of a Spec.
func invalid(format string, args ...any) error { return invalidField("", "", format, args...) }

// invalidField is an InvalidError about a field, with the value as the message is to
// show it.
func invalidField(field, value, format string, args ...any) error {
	return &InvalidError{Field: field, Value: shortened(value), Problem: shortened(fmt.Sprintf(format, args...))}
}

// shortened bounds what a message shows of a text, which may be megabytes from a file that
// nobody has read.
func shortened(text string) string {
	const most = 1000
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// joinSome joins errors, of many only the first.
func joinSome(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	const most = 20
	if more := len(errs) - most; more > 0 {
		errs = append(errs[:most:most], invalid("and %d more of the kind", more))
	}
	return errors.Join(errs...)
}

// invalidBecause makes an error of a lower layer an ErrInvalid about a field.
func invalidBecause(field string, err error) error {
	if i := new(InvalidError); errors.As(err, &i) {
		return err
	}
	if errors.Is(err, ErrInvalid) {
		return fromBox(err)
	}
	return &InvalidError{Field: field, Problem: err.Error(), Err: err}
}

// hostError makes a path of the host that is missing or odd the caller's mistake, in
// the caller's words.
func hostError(field, path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && !errors.Is(err, ErrInvalid) {
		return &InvalidError{Field: field, Value: shortened(path), Problem: pe.Err.Error(), Err: pe.Err}
	}
	return invalidBecause("", err)
}

// protectError is an error of package protect, which may be about an entry of
// FS.AllowWrite.
func protectError(err error) error {
	var entry *protect.EntryError
	if errors.As(err, &entry) {
		return &InvalidError{
			Field: at("fs.allow_write", entry.Index), Value: shortened(entry.Entry), Problem: shortened(entry.Problem),
			Err: err,
		}
	}
	return invalidBecause("", err)
}

// at is the path of an element of a list.
func at(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// quoted is a value as messages show it if it may hold anything.
func quoted[T ~string](v T) string { return fmt.Sprintf("%q", string(v)) }
