package broker

import (
	"context"
	"sync"
)

// room is what the calls that are being served at once may take: so many, and
// as many bytes as one frame may have, decoded values included. One call there
// is always room for. One goroutine takes, any may give.
type room struct {
	max   Limits
	freed chan struct{}

	mu           sync.Mutex
	calls, bytes int
}

func newRoom(l Limits) *room { return &room{max: l, freed: make(chan struct{}, 1)} }

// take waits until there is room.
func (r *room) take(ctx context.Context, bytes int) error {
	for !r.try(bytes) {
		select {
		case <-r.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (r *room) try(bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls > 0 && (r.calls >= r.max.AtOnce || r.bytes+bytes > r.max.Frame) {
		return false
	}
	r.calls++
	r.bytes += bytes
	return true
}

func (r *room) give(bytes int) {
	r.mu.Lock()
	r.calls--
	r.bytes -= bytes
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default: // it will look anyway
	}
}
