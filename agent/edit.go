package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/engine"
)

// Mode is the permission bits of a file, at most 0o777. 0 keeps those of an existing file
// and stands for 0o644 for a new one. In JSON it is a string of octal digits ("0755") or
// a decimal number (493).
type Mode uint32

// UnmarshalJSON accepts either form. The error wraps engine.ErrInvalid.
func (m *Mode) UnmarshalJSON(b []byte) error {
	var s string
	base := 10
	if json.Unmarshal(b, &s) == nil {
		b, base = []byte(strings.TrimPrefix(s, "0o")), 8
	}
	n, err := strconv.ParseUint(string(b), base, 32)
	if err != nil || n > 0o777 {
		return invalid(`mode %s: write a string of octal digits, "0755"`, b)
	}
	*m = Mode(n)
	return nil
}

// WriteInput is the input of Tools.WriteFile.
type WriteInput struct {
	Path    string `json:"path"`           // absolute, or relative to where commands start
	Content string `json:"content"`        // the whole file, at most Options.File bytes; may be ""
	Mode    Mode   `json:"mode,omitempty"` // of the file; 0 keeps it, or stands for 0o644
}

// PatchInput is the input of Tools.PatchFile.
type PatchInput struct {
	Path string `json:"path"` // absolute, or relative to where commands start
	// FromLine is the first line to replace, counted from 1. To insert, it may be one
	// more than the file has.
	FromLine int `json:"from_line"`
	// ToLine is the last line to replace. FromLine - 1 inserts Content before FromLine.
	ToLine  int    `json:"to_line"`
	Content string `json:"content"`        // whole lines; the last may lack its newline; "" deletes
	Mode    Mode   `json:"mode,omitempty"` // of the file; 0 keeps it
	// FirstLineIndent is the number of spaces to put before the first line of Content, 0
	// to 256. If it is not 0, that line must not begin with white space.
	FirstLineIndent int `json:"first_line_indent,omitempty"`
}

const maxIndent = 256

// WriteFile creates a file and its parent directories, or replaces a file as a whole. It
// returns "Wrote N bytes to PATH" and, if text was replaced by other text, a unified diff
// without file names. It writes through a symbolic link to its target.
func (t *Tools) WriteFile(ctx context.Context, in WriteInput) (string, error) {
	old, err := t.locked(ctx, func() ([]byte, error) { return t.write(ctx, in.Path, []byte(in.Content), in.Mode) })
	if err != nil {
		return "", &engine.Error{Op: "write file", Path: in.Path, Err: err}
	}
	text := fmt.Sprintf("Wrote %d bytes to %s", len(in.Content), in.Path)
	whole := len(old) < int(t.o.File) // otherwise the diff would be incomplete
	if new := []byte(in.Content); len(old) > 0 && whole && isText(old) && isText(new) && !bytes.Equal(old, new) {
		text += "\n" + diff(old, new)
	}
	return text, nil
}

// PatchFile replaces, inserts or deletes lines of a text file and returns a unified diff
// without file names. Whether the file ends in a newline does not change, except that an
// empty file ends as Content does.
func (t *Tools) PatchFile(ctx context.Context, in PatchInput) (string, error) {
	var changes string
	_, err := t.locked(ctx, func() ([]byte, error) {
		content, err := in.indented()
		if err != nil {
			return nil, err
		}
		old, err := t.readWhole(ctx, in.Path)
		if err != nil {
			return nil, err
		}
		new, err := in.apply(old, content)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(old, new) && in.Mode == 0 {
			changes = "(no change)"
			return nil, nil
		}
		changes = diff(old, new)
		return t.write(ctx, in.Path, new, in.Mode)
	})
	if err != nil {
		return "", &engine.Error{Op: "patch file", Path: in.Path, Err: err}
	}
	return changes, nil
}

func (t *Tools) locked(ctx context.Context, change func() ([]byte, error)) ([]byte, error) {
	unlock, err := t.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return change()
}

// indented returns Content with its indent. It refuses an indent together with leading
// white space: a model that gives both has miscounted one of them.
func (in PatchInput) indented() (string, error) {
	n := in.FirstLineIndent
	first, _ := utf8.DecodeRuneInString(in.Content)
	switch {
	case n < 0 || n > maxIndent:
		return "", invalid("first_line_indent %d: want 0 to %d", n, maxIndent)
	case n == 0:
		return in.Content, nil
	case in.Content == "":
		return "", invalid("first_line_indent without content")
	case unicode.IsSpace(first):
		return "", invalid("first_line_indent %d, but content begins with white space: use only one of them", n)
	}
	return strings.Repeat(" ", n) + in.Content, nil
}

// validate checks the patch against a file and returns the file's lines.
func (in PatchInput) validate(old []byte, content string) ([][]byte, error) {
	if !isText(old) {
		return nil, errors.New("is not UTF-8 text")
	}
	if !utf8.ValidString(content) {
		return nil, invalid("content is not UTF-8")
	}
	lines := splitLines(old)
	switch {
	case in.FromLine < 1 || in.FromLine > len(lines)+1:
		return nil, invalid("from_line %d: the file has %d lines", in.FromLine, len(lines))
	case in.ToLine < in.FromLine-1:
		return nil, invalid("to_line %d is before from_line %d; to insert, use from_line - 1", in.ToLine, in.FromLine)
	case in.ToLine > len(lines):
		return nil, invalid("to_line %d: the file has %d lines", in.ToLine, len(lines))
	}
	return lines, nil
}

// apply returns the file after the patch.
func (in PatchInput) apply(old []byte, content string) ([]byte, error) {
	lines, err := in.validate(old, content)
	if err != nil {
		return nil, err
	}
	if len(old) == 0 {
		return []byte(content), nil
	}
	var b bytes.Buffer
	whole := func(text []byte) { // adds a missing newline
		b.Write(text)
		if len(text) > 0 && text[len(text)-1] != '\n' {
			b.WriteByte('\n')
		}
	}
	whole(bytes.Join(lines[:in.FromLine-1], nil))
	whole([]byte(content))
	whole(bytes.Join(lines[in.ToLine:], nil))
	if old[len(old)-1] != '\n' {
		return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
	}
	return b.Bytes(), nil
}
