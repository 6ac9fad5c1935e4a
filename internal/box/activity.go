package box

import (
	"sync"
	"time"
)

// Activity counts the commands of a sandbox. The zero value counts none.
type Activity struct {
	mu      sync.Mutex
	running int
	entered Moment        // how many commands have come in
	begun   bool          // there has been a command
	last    *Usage        // while there is no process to use more
	wake    chan struct{} // made by Wake
}

// Enter counts a command in, and returns what the sandbox has used before it;
// measure is called only if that is not known.
func (a *Activity) Enter(measure func() Usage) Usage {
	a.mu.Lock()
	first, last, wake := !a.begun, a.last, a.wake
	a.begun, a.last = true, nil
	a.running++
	a.entered++
	a.mu.Unlock()
	if wake != nil {
		select {
		case wake <- struct{}{}:
		default: // it is awake
		}
	}
	switch {
	case first:
		return Usage{}
	case last != nil:
		return *last
	}
	return measure()
}

// A Moment tells whether a command has come in since another one.
type Moment int

// Now is taken before the sandbox is measured, for Leave.
func (a *Activity) Now() Moment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.entered
}

// Leave counts it out. now is what the sandbox had used at that moment. It is kept for
// the next command, unless another one has come in since and may have used more.
func (a *Activity) Leave(now Usage, at Moment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	if now.Empty && a.running == 0 && a.entered == at {
		a.last = &now
	}
}

// idle reports whether there is no command, not even one that is being started.
func (a *Activity) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running == 0
}

// woken is ready when a command comes in.
func (a *Activity) woken() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wake == nil {
		a.wake = make(chan struct{}, 1)
	}
	return a.wake
}

// A Look is one observation of a sandbox by a watchdog.
type Look struct {
	Memory int64 // bytes
	Pids   int   // processes and threads
	Idle   bool  // nothing runs
}

// Watchdog looks at a sandbox as often as it must and reports what it has too much
// of, until done is closed. first is the time until the first look after a command
// has come in; look returns what there is, and when to look again.
func Watchdog(out chan<- Exceeded, done <-chan struct{}, a *Activity, w Watch,
	first func() time.Duration, look func() (Look, time.Duration)) {
	over, asleep := false, false
	Poll(done, a.woken(), first(), func() time.Duration {
		if asleep {
			asleep = false
			return first()
		}
		now, next := look()
		e := Exceeded{Again: over}
		switch {
		case now.Memory > w.Memory:
			e.What = Memory
		case w.Kill && now.Pids > w.Pids:
			e.What = Pids
		}
		if over = e.What != 0; over {
			select {
			case out <- e:
			case <-done:
			}
			return next
		}
		if now.Idle && a.idle() {
			asleep = true
			return Forever
		}
		return next
	})
}
