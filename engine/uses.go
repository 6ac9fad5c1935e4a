package engine

import "sync"

// uses counts those who use something that is closed once. A sync.WaitGroup
// would not do: a use may begin while close waits, and adding to a WaitGroup at
// zero is forbidden then (it panics, or lets the use go on with what is closed).
// Here a use that begins after close is refused.
type uses struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed with the last use after close; nil: nobody waits
}

// begin reports whether the use may begin; if so, the caller calls end.
func (u *uses) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.n++
	}
	return !u.closed
}

// extend begins another use beside one that has not ended, which close cannot
// have overtaken.
func (u *uses) extend() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
}

func (u *uses) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n--; u.n == 0 && u.idle != nil {
		close(u.idle)
		u.idle = nil
	}
}

// close refuses further uses, and returns when none is left.
func (u *uses) close() {
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
