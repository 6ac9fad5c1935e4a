package agent

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/engine"
)

// ReadInput is what Tools.ReadFile takes.
type ReadInput struct {
	Path        string `json:"path"`
	MaxChars    int    `json:"max_chars,omitempty"`     // of the answer; 0 means 32768
	BinaryAsHex *bool  `json:"binary_as_hex,omitempty"` // false refuses what is not text; nil is true
	StartLine   int    `json:"start_line,omitempty"`    // the first line wanted, from 1; 0 is the first
	EndLine     int    `json:"end_line,omitempty"`      // the last line wanted; 0 is the last
	LineNumbers bool   `json:"line_numbers,omitempty"`  // each line begins with L<n>│, after which it stands exactly
}

const defaultChars = 32768

// ReadFile is the text of a regular file or of some of its lines, exactly; what
// does not fit ends in "...[truncated]". What is not UTF-8, or has NUL bytes,
// comes as hexadecimal digits after "[binary as hex] ". Without lines asked for,
// files may be of any size; else of up to Options.File.
func (t *Tools) ReadFile(ctx context.Context, in ReadInput) (string, error) {
	text, err := t.readFile(ctx, in)
	if err != nil {
		return "", &engine.Error{Op: "read file", Path: in.Path, Err: err}
	}
	return text, nil
}

func (t *Tools) readFile(ctx context.Context, in ReadInput) (string, error) {
	chars := orDefault(in.MaxChars, defaultChars)
	switch {
	case chars < 0:
		return "", invalid("max_chars %d: negative", chars)
	case in.StartLine < 0 || in.EndLine < 0:
		return "", invalid("lines are counted from 1")
	case in.EndLine != 0 && in.EndLine < in.StartLine:
		return "", invalid("end_line %d: before start_line %d", in.EndLine, in.StartLine)
	}
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
		return "", errors.New("is not text; with binary_as_hex its bytes can be read")
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
			return b.String() + truncated // a number alone tells nothing
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

// cut shortens s to a number of characters, and says so if there was more.
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
