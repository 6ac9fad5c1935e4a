package box

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Uses that begin while Close waits are refused, and none goes on with what has
// been closed. With a sync.WaitGroup in place of Uses this panics, or fails under
// the race detector.
func TestUsesEndBeforeClose(t *testing.T) {
	for range 5000 {
		var u Uses
		var closed atomic.Bool
		var users sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			users.Go(func() {
				<-begin
				for u.Begin() {
					if closed.Load() {
						t.Error("in use after close")
					}
					u.Extend()
					u.End()
					u.End()
				}
			})
		}
		close(begin)
		u.Close()
		closed.Store(true)
		users.Wait()
		u.Close() // twice is safe
		if u.Begin() {
			t.Fatal("a use began after close")
		}
	}
}
