package box

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Enter measures only if it must: nothing has been used before the first command,
// and nothing changes while there is no process.
func TestActivityMeasures(t *testing.T) {
	var a Activity
	measured := 0
	enter := func() Usage {
		return a.Enter(func() Usage { measured++; return Usage{CPU: 100} })
	}
	expect := func(when string, got Usage, cpu time.Duration, times int) {
		t.Helper()
		if got.CPU != cpu || measured != times {
			t.Errorf("%s: %v, measured %d times; want %v, %d", when, got.CPU, measured, cpu, times)
		}
	}
	expect("the first", enter(), 0, 0)
	expect("beside another", enter(), 100, 1)
	a.Leave(Usage{CPU: 7, Empty: true}, a.Now())
	expect("after one that left another", enter(), 100, 2)
	a.Leave(Usage{CPU: 8, Empty: true}, a.Now())
	if a.idle() {
		t.Error("idle, and a command runs")
	}
	a.Leave(Usage{CPU: 9, Empty: true}, a.Now())
	if !a.idle() {
		t.Error("not idle, and none runs")
	}
	expect("after all have left", enter(), 9, 2)
	a.Leave(Usage{CPU: 10}, a.Now())
	expect("after one that left processes behind", enter(), 100, 3)
	a.Leave(Usage{CPU: 11, Empty: true}, a.Now())

	// One that came and went after the measure may have used more.
	expect("measured", enter(), 11, 3)
	at := a.Now()
	expect("beside it", enter(), 100, 4)
	a.Leave(Usage{CPU: 50}, a.Now())
	a.Leave(Usage{CPU: 12, Empty: true}, at)
	expect("after a measure that another overtook", enter(), 100, 5)
}

// watched is a watchdog in a bubble.
type watched struct {
	*Activity
	out   chan Exceeded
	looks atomic.Int64 // how often it looked
	see   atomic.Pointer[Look]
}

// watch runs a test beside a watchdog that looks a second after a command came in,
// and then every minute.
func watch(t *testing.T, limits Watch, test func(t *testing.T, w *watched)) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Activity: new(Activity), out: make(chan Exceeded)}
		w.see.Store(new(Look))
		done, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			Watchdog(w.out, done, w.Activity, limits, func() time.Duration { return time.Second },
				func() (Look, time.Duration) {
					w.looks.Add(1)
					return *w.see.Load(), time.Minute
				})
		}()
		test(t, w)
		close(done)
		<-over
	})
}

// What is exceeded is reported at each look, with whether it was at the last one.
func TestWatchdogReports(t *testing.T) {
	const limit = 100
	for _, c := range []struct {
		name   string
		limits Watch
		see    Look
		want   Resource // 0: nothing
	}{
		{"memory", Watch{Memory: limit, Pids: Unlimited}, Look{Memory: limit + 1}, Memory},
		{"memory at the limit", Watch{Memory: limit, Pids: Unlimited}, Look{Memory: limit}, 0},
		{"processes", Watch{Memory: Unlimited, Pids: limit, Kill: true}, Look{Pids: limit + 1}, Pids},
		{"processes at the limit", Watch{Memory: Unlimited, Pids: limit, Kill: true}, Look{Pids: limit}, 0},
		{"processes, reported only", Watch{Memory: Unlimited, Pids: limit}, Look{Pids: limit + 1}, 0},
		{"both", Watch{Memory: limit, Pids: limit, Kill: true}, Look{Memory: limit + 1, Pids: limit + 1}, Memory},
		{"memory that nothing uses", Watch{Memory: limit, Pids: Unlimited}, Look{Memory: limit + 1, Idle: true}, Memory},
	} {
		t.Run(c.name, func(t *testing.T) {
			watch(t, c.limits, func(t *testing.T, w *watched) {
				w.see.Store(&c.see)
				for _, again := range []bool{false, true, true} {
					select {
					case e := <-w.out:
						if e != (Exceeded{What: c.want, Again: again}) || c.want == 0 {
							t.Errorf("got %+v, want %d, again %v", e, c.want, again)
						}
					case <-time.After(90 * time.Second):
						if c.want != 0 {
							t.Error("it reported nothing")
						}
					}
				}
				if c.want == 0 {
					return
				}
				w.see.Store(new(Look)) // and once more after it was well
				time.Sleep(time.Minute)
				synctest.Wait()
				w.see.Store(&c.see)
				if e := <-w.out; e.Again {
					t.Errorf("got %+v, and it was well in between", e)
				}
			})
		})
	}
}

// A report that nobody takes does not hold up the end.
func TestWatchdogEndsWhileItReports(t *testing.T) {
	watch(t, Watch{Memory: 1, Pids: Unlimited}, func(t *testing.T, w *watched) {
		w.see.Store(&Look{Memory: 2})
		time.Sleep(time.Hour)
	})
}

// A watchdog sleeps while there are neither commands nor processes, and a command
// that comes in wakes it.
func TestWatchdogSleeps(t *testing.T) {
	watch(t, Watch{Memory: 1, Pids: Unlimited}, func(t *testing.T, w *watched) {
		expect := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := w.looks.Load(); got != want {
				t.Errorf("%s: %d looks, want %d", when, got, want)
			}
		}
		w.see.Store(&Look{Idle: true})
		synctest.Wait() // it waits for its first look, so that the command wakes it later
		w.Enter(nil)
		time.Sleep(10 * time.Minute)
		expect("an idle sandbox with a command that is being started", 10)
		w.Leave(Usage{Empty: true}, w.Now())
		time.Sleep(1000 * time.Hour)
		expect("asleep, after one more look for the command that came in", 12)
		w.Enter(nil)
		time.Sleep(time.Second - 1)
		expect("just woken", 12)
		time.Sleep(1)
		expect("a second after a command came in", 13)
		w.Enter(func() Usage { return Usage{} })
		w.Enter(func() Usage { return Usage{} }) // does not block, though nobody takes the wake
	})
}
