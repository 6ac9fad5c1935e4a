package engine

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Uses that begin while close waits are refused, and none goes on with what has
// been closed. With a sync.WaitGroup in place of uses this panics, or fails under
// the race detector.
func TestUsesEndBeforeClose(t *testing.T) {
	for range 5000 {
		var u uses
		var closed atomic.Bool
		var users sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			users.Go(func() {
				<-begin
				for u.begin() {
					if closed.Load() {
						t.Error("in use after close")
					}
					u.extend()
					u.end()
					u.end()
				}
			})
		}
		close(begin)
		u.close()
		closed.Store(true)
		users.Wait()
		u.close() // twice is safe
		if u.begin() {
			t.Fatal("a use began after close")
		}
	}
}
