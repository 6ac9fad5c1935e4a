package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/engine"
)

// ReadInput is the input of Tools.ReadFile.
type ReadInput struct {
	Path        string `json:"path"`                    // absolute, or relative to where commands start
	MaxChars    int    `json:"max_chars,omitempty"`     // most characters of the answer; 0 is 32768
	BinaryAsHex *bool  `json:"binary_as_hex,omitempty"` // false refuses files that are not text; nil is true
	StartLine   int    `json:"start_line,omitempty"`    // the first line, counted from 1; 0 is the first
	EndLine     int    `json:"end_line,omitempty"`      // the last line, included; 0 is the last
	LineNumbers bool   `json:"line_numbers,omitempty"`  // put L<n>│ before each line
}

const defaultChars = 32768

// ReadFile returns the exact text of a regular file or of some of its lines. Longer text
// is cut and ends in "...[truncated]". A file that is not UTF-8 or contains NUL bytes is
// returned in hexadecimal after "[binary as hex] ". The file may have any size, but at
// most Options.File if lines are selected.
func (t *Tools) ReadFile(ctx context.Context, in ReadInput) (string, error) {
	text, err := t.readFile(ctx, in)
	if err != nil {
		return "", &engine.Error{Op: "read file", Path: in.Path, Err: err}
	}
	return text, nil
}

func (t *Tools) readFile(ctx context.Context, in ReadInput) (string, error) {
	if err := in.validate(); err != nil {
		return "", err
	}
	chars := cmp.Or(in.MaxChars, defaultChars)
	lines := in.StartLine != 0 || in.EndLine != 0
	var content []byte
	var more bool
	var err error
	if lines {
		content, err = t.readWhole(ctx, in.Path)
	} else {
		content, more, err = t.read(ctx, in.Path, min(chars, int(t.o.File)/utf8.UTFMax)*utf8.UTFMax)
	}
	if err != nil {
		return "", err
	}
	if more {
		content = content[:len(content)-cutRune(content)]
	}
	switch hexed := in.BinaryAsHex == nil || *in.BinaryAsHex; {
	case isText(content):
	case lines:
		return "", errors.New("is not text, so it has no lines")
	case !hexed:
		return "", errors.New("is not text; set binary_as_hex to read its bytes")
	default:
		return "[binary as hex] " + cut(hex.EncodeToString(content), chars, more), nil
	}
	first := max(in.StartLine, 1)
	if !lines && !in.LineNumbers {
		return cut(string(content), chars, more), nil
	}
	all := splitLines(content)
	last := len(all)
	if in.EndLine != 0 {
		last = min(in.EndLine, last)
	}
	if first > max(len(all), 1) {
		return "", fmt.Errorf("start_line %d: the file has %d lines", first, len(all))
	}
	return pick(all[first-1:last], first, in.LineNumbers, chars, more), nil
}

func (in ReadInput) validate() error {
	switch {
	case in.MaxChars < 0:
		return invalid("max_chars %d is negative", in.MaxChars)
	case in.StartLine < 0 || in.EndLine < 0:
		return invalid("lines are counted from 1")
	case in.EndLine != 0 && in.EndLine < in.StartLine:
		return invalid("end_line %d is before start_line %d", in.EndLine, in.StartLine)
	}
	return nil
}

// pick joins lines up to a number of characters.
func pick(lines [][]byte, number int, numbers bool, chars int, more bool) string {
	var b strings.Builder
	for i, line := range lines {
		prefix := ""
		if numbers {
			prefix = fmt.Sprintf("L%d│", number+i)
		}
		n := utf8.RuneCountInString(prefix)
		if chars <= n && chars < n+utf8.RuneCount(line) {
			return b.String() + truncated // a number without text is useless
		}
		b.WriteString(prefix)
		chars -= n
		if utf8.RuneCount(line) > chars {
			return b.String() + cut(string(line), chars, true)
		}
		b.Write(line)
		chars -= utf8.RuneCount(line)
	}
	if more {
		b.WriteString(truncated)
	}
	return b.String()
}

// cut shortens s to a number of characters, and marks it as truncated if there is more.
func cut(s string, chars int, more bool) string {
	n := 0
	for i := range s {
		if n == chars {
			return s[:i] + truncated
		}
		n++
	}
	if more {
		return s + truncated
	}
	return s
}

func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// splitLines cuts after each newline; the last line may have none.
func splitLines(b []byte) [][]byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	return lines
}
