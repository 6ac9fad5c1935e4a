// Package lines cuts a stream into lines of bounded length, for both ends of a
// channel that carries a message a line.
package lines

import (
	"bytes"
	"errors"
	"io"
)

// ErrTooLong is a line that was longer than is allowed. It has been skipped;
// reading goes on after it.
var ErrTooLong = errors.New("line too long")

// Reader cuts a stream into lines, and holds no more of it than the longest that
// is allowed, and little more. One goroutine at a time uses it.
type Reader struct {
	From  io.Reader
	Limit int // bytes of a line, without its end

	buf   []byte // what has been read
	begin int    // of what has not been returned
	seen  int    // up to here there is no end of a line
	skips bool   // what comes belongs to a line that is too long
}

const readSize = 32 << 10

// Next returns the next line, without its end. It is the caller's to keep. What
// stands behind the last end of a line is no line. Its error is ErrTooLong, or
// that of a read, after which it may be called again: nothing is lost.
func (f *Reader) Next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(f.buf[f.seen:], '\n'); i >= 0 {
			line := f.buf[f.begin : f.seen+i]
			f.begin = f.seen + i + 1
			f.seen = f.begin
			if f.skips || len(line) > f.Limit {
				f.skips = false
				f.drop()
				return nil, ErrTooLong
			}
			return f.take(line), nil
		}
		if f.seen = len(f.buf); f.skips || f.seen-f.begin > f.Limit {
			f.skips = true
			f.buf, f.begin, f.seen = f.buf[:0], 0, 0
			f.drop()
		}
		if err := f.fill(); err != nil {
			return nil, err
		}
	}
}

// More tells whether there is something behind the last line already.
func (f *Reader) More() bool { return f.begin < len(f.buf) }

// take gives a line away: a long one with the memory that it stands in, unless
// there is more behind it.
func (f *Reader) take(line []byte) []byte {
	if f.begin == len(f.buf) && len(line) > readSize {
		f.buf, f.begin, f.seen = nil, 0, 0
		return line
	}
	return bytes.Clone(line)
}

// drop gives back the memory of a long line.
func (f *Reader) drop() {
	if cap(f.buf) > 4*readSize && len(f.buf)-f.begin <= readSize {
		f.buf = append(make([]byte, 0, readSize), f.buf[f.begin:]...)
		f.begin, f.seen = 0, 0
	}
}

// fill reads more, into what is free at the end.
func (f *Reader) fill() error {
	if f.begin > 0 {
		n := copy(f.buf, f.buf[f.begin:])
		f.buf, f.seen, f.begin = f.buf[:n], f.seen-f.begin, 0
		f.drop()
	}
	if cap(f.buf)-len(f.buf) < readSize/2 {
		grown := make([]byte, len(f.buf), min(max(2*cap(f.buf), readSize), f.Limit+2*readSize))
		copy(grown, f.buf)
		f.buf = grown
	}
	n, err := f.From.Read(f.buf[len(f.buf):cap(f.buf)])
	f.buf = f.buf[:len(f.buf)+n]
	if n > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}
