package box

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// Close waits for the last use, even for one that was extended meanwhile, and lets
// none begin.
func TestUsesCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u Uses
		if !u.Begin() {
			t.Fatal("the first use was refused")
		}
		var closed atomic.Int64
		for range 2 {
			go func() { u.Close(); closed.Add(1) }()
		}
		expect := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := closed.Load(); got != want {
				t.Errorf("%s: %d of those who close have returned, want %d", when, got, want)
			}
			if u.Begin() {
				t.Errorf("%s: a use began", when)
			}
		}
		expect("in use", 0)
		u.Extend()
		u.End()
		expect("extended", 0)
		u.End()
		expect("at the end", 2)
	})
}

// Refuse lets none begin, and does not wait.
func TestUsesRefuse(t *testing.T) {
	var u Uses
	u.Begin()
	u.Refuse()
	if u.Begin() {
		t.Error("a use began")
	}
	u.End()
	u.Close()
}
