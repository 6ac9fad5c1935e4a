package lines

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// lines reads all that there is.
func lines(t *testing.T, r io.Reader, limit int) (all []string, tooLong int) {
	t.Helper()
	f := Reader{From: r, Limit: limit}
	for {
		line, err := f.Next()
		switch {
		case errors.Is(err, ErrTooLong):
			tooLong++
		case errors.Is(err, io.EOF):
			return all, tooLong
		case err != nil:
			t.Fatal(err)
		default:
			all = append(all, string(line))
		}
		if cap(f.buf) > limit+4*readSize {
			t.Fatalf("%d bytes are held, for lines of at most %d", cap(f.buf), limit)
		}
	}
}

// However the stream is cut into reads, its lines are the same, and those of a
// plain split.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nbb\nccc"), uint16(2))
	f.Add(bytes.Repeat([]byte("x"), 200_000), uint16(1000))
	f.Add(append(bytes.Repeat([]byte("x"), 100_000), "\ny\n"...), uint16(60000))
	f.Add(bytes.Repeat([]byte("0123456789\n"), 20_000), uint16(10))
	f.Fuzz(func(t *testing.T, data []byte, limit uint16) {
		var want []string
		long := 0
		parts := bytes.Split(data, []byte("\n"))
		for _, l := range parts[:len(parts)-1] {
			if len(l) > int(limit) {
				long++
				continue
			}
			want = append(want, string(l))
		}
		for name, r := range map[string]io.Reader{
			"whole": bytes.NewReader(data), "halves": iotest.HalfReader(bytes.NewReader(data)), "with its end": iotest.DataErrReader(bytes.NewReader(data)),
		} {
			got, tooLong := lines(t, r, int(limit))
			if len(got) != len(want) || tooLong != long {
				t.Fatalf("%s: %d lines and %d too long, want %d and %d", name, len(got), tooLong, len(want), long)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%s: line %d is %q, want %q", name, i, got[i], want[i])
				}
			}
		}
	})
}
