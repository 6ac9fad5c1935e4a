package wire

import (
	"context"
	"sync"

	"github.com/tegmen-dev/tegmen/broker"
)

// inflight is a semaphore that bounds the calls in flight, by count (Limits.AtOnce)
// and by total bytes (Limits.Frame), decoded arguments included. A single call always
// fits. One goroutine acquires; any may release.
type inflight struct {
	max   broker.Limits
	freed chan struct{} // holds one: something was released

	mu           sync.Mutex
	calls, bytes int
}

func newInflight(l broker.Limits) *inflight { return &inflight{max: l, freed: make(chan struct{}, 1)} }

// acquire waits until the call fits, or ctx is done.
func (f *inflight) acquire(ctx context.Context, bytes int) error {
	for !f.tryAcquire(bytes) {
		select {
		case <-f.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (f *inflight) tryAcquire(bytes int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls > 0 && (f.calls >= f.max.AtOnce || f.bytes+bytes > f.max.Frame) {
		return false
	}
	f.calls++
	f.bytes += bytes
	return true
}

func (f *inflight) release(bytes int) {
	f.mu.Lock()
	f.calls--
	f.bytes -= bytes
	f.mu.Unlock()
	select {
	case f.freed <- struct{}{}:
	default: // acquire will try again anyway
	}
}
