package box

import "time"

// Counter names who counted a Usage.
type Counter int

// The counters.
const (
	ByWatchdog Counter = iota + 1 // this process has looked from time to time
	ByCgroup                      // the kernel
)

// Usage counts the resources that a sandbox has used since its start, and the limits
// that it has reached.
type Usage struct {
	By            Counter       // 0: nobody has counted
	CPU           time.Duration // of all processes, ended ones included
	Memory        int64         // bytes, the most so far
	Pids          int           // the most so far
	Read, Written int64         // bytes, from and to block devices
	Empty         bool          // there is no process, so nothing changes until a command starts

	OOM, OOMKill int64 // memory could not be had; processes were killed for that
	OwnOOM       bool  // its own limit was reached, ever: a kill may be counted some time after its cause
	Swept        int64 // times that all processes were killed for that
	Reclaimed    int64 // times that memory was at its limit
	ForkFail     int64 // forks that were refused
	Throttled    int64 // periods in which the share of CPUs was used up
	High         int64 // times that Settings.MemoryHigh was passed
}

// Since is what was used, and what happened, after an earlier moment.
func (u Usage) Since(before Usage) Usage {
	u.CPU -= before.CPU
	u.Read, u.Written = u.Read-before.Read, u.Written-before.Written
	u.OOM, u.OOMKill, u.Reclaimed = u.OOM-before.OOM, u.OOMKill-before.OOMKill, u.Reclaimed-before.Reclaimed
	u.ForkFail, u.Swept = u.ForkFail-before.ForkFail, u.Swept-before.Swept
	u.Throttled, u.High = u.Throttled-before.Throttled, u.High-before.High
	return u
}
