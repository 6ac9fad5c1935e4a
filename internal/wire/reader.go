package wire

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/lines"
)

// reader is the state of the goroutine that reads from a link. It also serves calls of
// tools whose last call was quick, one at a time: waking another goroutine, often on
// another thread, takes longer than such a call. If the tool is slow this time, watch
// takes over reading.
type reader struct {
	in    lines.Reader
	count uint64        // calls served in place; only the reading goroutine uses it
	now   atomic.Uint64 // the one being served, by count; 0: none, or watch has taken over
	busy  atomic.Bool   // watch is ticking
	wake  chan struct{} // holds one: starts watch's ticker
}

const (
	quick    = 250 * time.Microsecond // calls shorter than that may be served in place
	patience = 2 * time.Millisecond   // watch takes over after one to two of these
)

func (l *Link) setQuick(tool string, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quick[tool] = is
}

func (l *Link) isQuick(tool string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quick[tool]
}

// serve reads until the end, or until another goroutine takes over.
func (l *Link) serve() {
	for {
		line, err := l.reader.in.Next()
		if err != nil && !errors.Is(err, lines.ErrTooLong) {
			break
		}
		if err != nil {
			e := broker.Errorf(broker.CodeTooLarge, "line longer than %d bytes", l.limits.Frame)
			if !l.refuse(nil, e) {
				break
			}
			continue
		}
		c, more := l.handleOrLeave(line)
		switch {
		case !more:
		case c == nil:
			continue
		case !l.isQuick(c.FullName()) || l.reader.in.More():
			go c.serve()
			continue
		case l.serveInPlace(c):
			continue
		default:
			return
		}
		break
	}
	l.handshake.Stop()
	_ = l.hangUp() // so that the guest notices
	l.current().close()
	close(l.ended)
}

// handleOrLeave is handle, except that another goroutine reads on if a hook ends this
// one.
func (l *Link) handleOrLeave(line []byte) (c *call, more bool) {
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

// serveInPlace serves a call, and reports whether this goroutine still is the reader.
func (l *Link) serveInPlace(c *call) (still bool) {
	r := &l.reader
	r.count++
	n := r.count
	r.now.Store(n) // before busy is read: watch does it the other way round
	if !r.busy.Swap(true) {
		r.wake <- struct{}{} // never blocks: watch takes it before it resets busy
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

// watch takes over from a reader that serves a call for long. It polls with a ticker,
// since a timer for each call would cost what serving in place saves.
func (l *Link) watch() {
	const idle = 25 // ticks without a call, after which watch waits for wake
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
