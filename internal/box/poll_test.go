package box

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Poll looks after the times that it is told, and stops at 0.
func TestPollLooksInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var looks []time.Duration
		next := []time.Duration{time.Hour, time.Millisecond, 0}
		Poll(nil, nil, time.Second, func() time.Duration {
			looks = append(looks, time.Since(begin))
			return next[len(looks)-1]
		})
		want := []time.Duration{time.Second, time.Second + time.Hour, time.Second + time.Hour + time.Millisecond}
		if len(looks) != len(want) {
			t.Fatalf("looked at %v, want %v", looks, want)
		}
		for i := range want {
			if looks[i] != want[i] {
				t.Errorf("look %d after %v, want %v", i, looks[i], want[i])
			}
		}
	})
}

// A look that waits for ever is woken; one that waits for a time is not.
func TestPollIsWokenFromForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, wake := make(chan struct{}), make(chan struct{}, 1)
		var looks atomic.Int64
		over := make(chan struct{})
		go func() {
			defer close(over)
			Poll(done, wake, time.Hour, func() time.Duration { looks.Add(1); return Forever })
		}()
		wake <- struct{}{}
		expect := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := looks.Load(); got != want {
				t.Errorf("%s: %d looks, want %d", when, got, want)
			}
		}
		expect("woken within the first hour", 0)
		time.Sleep(time.Hour)
		expect("after the hour, with a wake that was waiting", 2)
		time.Sleep(1000 * time.Hour)
		expect("asleep", 2)
		wake <- struct{}{}
		expect("woken", 3)
		close(done)
		<-over
	})
}

func TestPollEnds(t *testing.T) {
	for name, first := range map[string]time.Duration{"with a timer": time.Hour, "asleep": Forever} {
		synctest.Test(t, func(t *testing.T) {
			done := make(chan struct{})
			begin := time.Now()
			time.AfterFunc(time.Minute, func() { close(done) })
			Poll(done, nil, first, func() time.Duration { t.Errorf("%s: it looked", name); return 0 })
			if d := time.Since(begin); d != time.Minute {
				t.Errorf("%s: ended after %v", name, d)
			}
		})
	}
	Poll(nil, nil, 0, func() time.Duration { t.Error("it looked"); return 0 })
}
