package agent

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What a guest lists becomes entries that a directory can have, or an error.
func FuzzEntries(f *testing.F) {
	f.Add("-rw-r--r-- 1 2 ./a\nb/\ndrwxr-xr-x 4096 1 ./ d/\n")
	f.Fuzz(func(t *testing.T, s string) {
		entries, err := parseEntries(s)
		if err != nil && entries != nil {
			t.Errorf("%v and %v", entries, err)
		}
		for _, e := range entries {
			if e.name == "" || strings.Contains(e.name, "/") {
				t.Errorf("name %q", e.name)
			}
		}
	})
}

// Whatever a guest writes in whatever pieces, what is kept of it is text, and is
// all of it where that is short.
func FuzzTranscript(f *testing.F) {
	f.Add([]byte("ab\xc5\xbe\xff"), 2, 100)
	f.Fuzz(func(t *testing.T, b []byte, piece, limit int) {
		if piece < 1 || limit < 1 || limit > 1<<20 {
			t.Skip()
		}
		var told strings.Builder
		tr := newTranscript(limit, func(_ Stream, s string) { told.WriteString(s) })
		for rest := b; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			_, _ = output{tr, Stdout}.Write(rest[:min(piece, len(rest))])
		}
		got := tr.text()
		if !utf8.ValidString(got) || !utf8.ValidString(told.String()) || len(got) > limit+2*labelSize+len(truncated)+1 {
			t.Errorf("%d bytes of %d: %q", len(got), limit, got)
		}
		if utf8.Valid(b) && limit > 8*(len(b)+labelSize) && got != strings.TrimRight(string(b), "\n") {
			t.Errorf("got %q of %q", got, b)
		}
	})
}
