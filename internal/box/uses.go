package box

import "sync"

// Uses counts those who use something that is closed once. A sync.WaitGroup
// would not do: a use may begin while Close waits, and adding to a WaitGroup at
// zero is forbidden then (it panics, or lets the use go on with what is closed).
// Here a use that begins after Close is refused.
type Uses struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed with the last use after Close; nil: nobody waits
}

// Begin reports whether the use may begin; if so, the caller calls End.
func (u *Uses) Begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.n++
	}
	return !u.closed
}

// Extend begins another use beside one that has not ended, which Close cannot
// have overtaken.
func (u *Uses) Extend() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
}

// End ends a use.
func (u *Uses) End() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n--; u.n == 0 && u.idle != nil {
		close(u.idle)
		u.idle = nil
	}
}

// Refuse refuses further uses.
func (u *Uses) Refuse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
}

// Close refuses further uses, and returns when none is left.
func (u *Uses) Close() {
	u.mu.Lock()
	u.closed = true
	idle := u.idle
	if u.n > 0 && idle == nil {
		idle = make(chan struct{})
		u.idle = idle
	}
	u.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
