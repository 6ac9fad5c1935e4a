//go:build linux && (amd64 || arm64)

package launch

import "time"

// A Clock converts cycle stamps to time. It is safe for concurrent use.
type Clock struct {
	cycles uint64
	time   time.Time
}

// NewClock takes the first of the two readings that give the rate.
func NewClock() Clock { return Clock{cycles(), time.Now()} }

// Rate returns nanoseconds per cycle. It gets more exact with the time since
// NewClock.
func (c Clock) Rate() float64 {
	n := cycles() - c.cycles
	return float64(time.Since(c.time)) / float64(max(n, 1))
}

// Cycles reads the counter that the steps are stamped with.
func Cycles() uint64 { return cycles() }
