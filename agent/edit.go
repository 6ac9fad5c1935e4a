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

// Mode is the permission bits of a file, at most 0o777. 0 keeps those of a file
// that exists, and means 0o644 for a new one. In JSON it is a string of octal
// digits ("0755") or a number, whose bits they are (493).
type Mode uint32

// UnmarshalJSON reads either form.
func (m *Mode) UnmarshalJSON(b []byte) error {
	var s string
	base := 10
	if json.Unmarshal(b, &s) == nil {
		b, base = []byte(strings.TrimPrefix(s, "0o")), 8
	}
	n, err := strconv.ParseUint(string(b), base, 32)
	if err != nil || n > 0o777 {
		return invalid(`mode %s: write octal digits in a string, "0755"`, b)
	}
	*m = Mode(n)
	return nil
}

// WriteInput is what Tools.WriteFile takes.
type WriteInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Mode    Mode   `json:"mode,omitempty"`
}

// PatchInput is what Tools.PatchFile takes.
type PatchInput struct {
	Path string `json:"path"`
	// FromLine to ToLine are replaced, counted from 1, both included. With
	// ToLine one less than FromLine, Content is put before FromLine, which may
	// then be one more than the file has.
	FromLine int    `json:"from_line"`
	ToLine   int    `json:"to_line"`
	Content  string `json:"content"`        // whole lines; the last may lack its newline; "" deletes
	Mode     Mode   `json:"mode,omitempty"` // of the file; 0 keeps it
	// FirstLineIndent spaces, at most 256, are put before the first line of
	// Content, which then must not begin with white space of its own.
	FirstLineIndent int `json:"first_line_indent,omitempty"`
}

const maxIndent = 256

// WriteFile makes a file, with its parents, or replaces it as a whole, and says
// "Wrote N bytes to PATH". Where text is replaced by other text the changes
// follow, as a unified diff without names. A symbolic link stays, and what it
// leads to is written.
func (t *Tools) WriteFile(ctx context.Context, in WriteInput) (string, error) {
	old, err := t.locked(ctx, func() ([]byte, error) { return t.write(ctx, in.Path, []byte(in.Content), in.Mode) })
	if err != nil {
		return "", &engine.Error{Op: "write file", Path: in.Path, Err: err}
	}
	text := fmt.Sprintf("Wrote %d bytes to %s", len(in.Content), in.Path)
	whole := len(old) < int(t.o.File) // or what is shown would not be all of it
	if new := []byte(in.Content); len(old) > 0 && whole && isText(old) && isText(new) && !bytes.Equal(old, new) {
		text += "\n" + diff(old, new)
	}
	return text, nil
}

// PatchFile replaces or inserts lines of a text file, and shows what changed, as
// a unified diff without names. A file that ends in a newline, or does not,
// keeps doing so; an empty one ends as Content does.
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

// indented is the content with its indent. A model that gives both an indent
// and white space has miscounted one of them.
func (in PatchInput) indented() (string, error) {
	n := in.FirstLineIndent
	first, _ := utf8.DecodeRuneInString(in.Content)
	switch {
	case n < 0 || n > maxIndent:
		return "", invalid("first_line_indent %d: 0 to %d", n, maxIndent)
	case n == 0:
		return in.Content, nil
	case in.Content == "":
		return "", invalid("first_line_indent without content")
	case unicode.IsSpace(first):
		return "", invalid("first_line_indent %d, but content begins with white space: give one or the other", n)
	}
	return strings.Repeat(" ", n) + in.Content, nil
}

// apply is the file after the patch.
func (in PatchInput) apply(old []byte, content string) ([]byte, error) {
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
		return nil, invalid("to_line %d: before from_line %d; one less inserts", in.ToLine, in.FromLine)
	case in.ToLine > len(lines):
		return nil, invalid("to_line %d: the file has %d lines", in.ToLine, len(lines))
	}
	if len(old) == 0 {
		return []byte(content), nil
	}
	var b bytes.Buffer
	whole := func(text []byte) { // lines, each with its newline
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
