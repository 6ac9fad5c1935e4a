// Package lines splits a stream into lines of bounded length, for both ends of a
// channel with one message a line.
package lines

import (
	"bytes"
	"errors"
	"io"
)

// ErrTooLong means that a line was longer than Reader.Limit. It has been skipped, and
// reading continues after it.
var ErrTooLong = errors.New("line too long")

// Reader splits a stream into lines. It buffers little more than the longest line
// allowed. It must not be used concurrently.
type Reader struct {
	From  io.Reader // read from; the caller closes it
	Limit int       // bytes of a line, without the newline

	buf   []byte // what has been read
	begin int    // start of what has not been returned
	seen  int    // there is no newline between begin and here
	skips bool   // the rest of a line that is too long comes next
}

const readSize = 32 << 10

// Next returns the next line, without the newline. The caller may keep it. Bytes after
// the last newline are not returned. The error is ErrTooLong or that of a read; after
// either, Next may be called again and nothing is lost.
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

// More reports whether bytes after the last line have been read already.
func (f *Reader) More() bool { return f.begin < len(f.buf) }

// take returns a line that the caller may keep: a copy, or the buffer itself if the
// line is long and nothing follows it.
func (f *Reader) take(line []byte) []byte {
	if f.begin == len(f.buf) && len(line) > readSize {
		f.buf, f.begin, f.seen = nil, 0, 0
		return line
	}
	return bytes.Clone(line)
}

// drop shrinks the buffer after a long line.
func (f *Reader) drop() {
	if cap(f.buf) > 4*readSize && len(f.buf)-f.begin <= readSize {
		f.buf = append(make([]byte, 0, readSize), f.buf[f.begin:]...)
		f.begin, f.seen = 0, 0
	}
}

// fill reads more into the free end of the buffer.
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
		return nil // the next read returns an error again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}
