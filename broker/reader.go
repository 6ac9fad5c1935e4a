package broker

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/tegmen-dev/tegmen/internal/lines"
)

// reader is who reads from a link. That one goroutine also serves calls of tools
// that were quick the last time, one at a time: another goroutine for each would
// have to be woken, on another thread often, which takes longer than the call.
// Should a tool not be quick this time, another goroutine takes over reading.
type reader struct {
	in    lines.Reader
	count uint64        // of calls that were served in place; the reader's own
	now   atomic.Uint64 // the one being served, by count; 0: none, or not the reader's any more
	busy  atomic.Bool   // somebody is watching
	wake  chan struct{} // has them watch
}

const (
	quick    = 250 * time.Microsecond // what may be served in place
	patience = 2 * time.Millisecond   // with what takes longer this time; at most twice that
)

// serve reads until the end, or until another takes over.
func (l *Link) serve() {
	for {
		line, err := l.reader.in.Next()
		if err != nil && !errors.Is(err, lines.ErrTooLong) {
			break
		}
		if err != nil {
			if !l.refuse(nil, refuse(CodeTooLarge, "a line of more than %d bytes", l.limits.Frame)) {
				break
			}
			continue
		}
		c, ok := l.heard(line)
		switch {
		case !ok:
		case c == nil:
			continue
		case !c.tool.quick.Load() || l.reader.in.More():
			go c.serve()
			continue
		case l.inPlace(c):
			continue
		default:
			return
		}
		break
	}
	l.handshake.Stop()
	_ = l.hangUp() // whoever is not listened to any more shall know
	l.current().over()
	close(l.ended)
}

// heard is handle, after which another reads if a hook has ended this goroutine.
func (l *Link) heard(line []byte) (c *call, more bool) {
	left := true
	defer func() {
		if left {
			go l.serve()
		}
	}()
	c, more = l.handle(line)
	left = false
	return c, more
}

// inPlace serves a call, and tells whether its goroutine still is who reads.
func (l *Link) inPlace(c *call) (still bool) {
	r := &l.reader
	r.count++
	n := r.count
	r.now.Store(n) // before asking who watches: watch does these two the other way round
	if !r.busy.Swap(true) {
		r.wake <- struct{}{} // there is room: it is taken before busy is false again
	}
	defer func() {
		if !still && r.now.CompareAndSwap(n, 0) {
			go l.serve() // the tool has ended this goroutine
		}
	}()
	c.serve()
	still = r.now.CompareAndSwap(n, 0)
	return still
}

// watch takes over from a reader that serves a call for long. It looks for that
// from time to time, since a timer for each call would cost what is saved.
func (l *Link) watch() {
	const idle = 25 // looks without a call, after which it waits to be woken
	r := &l.reader
	for {
		select {
		case <-r.wake:
		case <-l.ended:
			return
		}
		t := time.NewTicker(patience)
		for last, quiet := uint64(0), 0; ; {
			select {
			case <-t.C:
			case <-l.ended:
				t.Stop()
				return
			}
			n := r.now.Load()
			if n != 0 && n == last && r.now.CompareAndSwap(n, 0) {
				t.Stop()
				r.busy.Store(false)
				go l.watch()
				l.serve()
				return
			}
			if quiet++; n != last {
				last, quiet = n, 0
			}
			if quiet < idle {
				continue
			}
			r.busy.Store(false)
			if r.now.Load() == 0 || !r.busy.CompareAndSwap(false, true) {
				break
			}
		}
		t.Stop()
	}
}
