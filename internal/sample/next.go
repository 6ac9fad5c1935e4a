package sample

import "time"

// A Sample is what a sandbox has and has used at some time.
type Sample struct {
	// Memory is bytes: anonymous memory, shared memory, what is in tmpfs and memfds,
	// and page tables. It is no less than there is, as far as can be seen. Where it
	// is above the limit that Sample was given, and the Sample is not Partial,
	// there is more than the limit: what processes share was counted once.
	Memory int64
	// CPU is what all processes of the sandbox have used since it was opened, or
	// before, in steps of 10 ms a process. It never decreases.
	CPU time.Duration
	// Processes counts threads, as RLIMIT_NPROC and pids.max do, with pid 1.
	Processes int
	// Hidden counts processes that are known of and cannot be looked at. Their
	// memory and CPU time are not in here.
	Hidden int
	// Partial says that there was not the time to look at everything: of what
	// was not looked at, this has what was last known, and Memory may be too much.
	// It goes on with the next Sample, and a few are enough, whatever guests do.
	Partial bool
	// Cost is how long it took to find out.
	Cost time.Duration
}

// Limits are what a sandbox is to stay below. Zero is no limit.
type Limits struct {
	Memory    int64         // bytes
	CPU       time.Duration // of all its processes together
	Processes int           // threads
	CPUs      int           // how many its processes can run on at once; zero is one
}

const (
	Shortest = 2 * time.Millisecond   // Shortest is the least that Next returns.
	Longest  = 250 * time.Millisecond // Longest is the most.

	// growth is how many bytes a CPU can take into use in a second. Touching pages
	// of 4 KiB did 2.3 GiB here, huge ones 3.3 GiB; fallocate in a tmpfs, which
	// clears no pages yet, 10 GiB.
	growth = 10 << 30
	// together is how many CPUs can do so before they are in each other's way.
	together = 4
	// forks is how many processes a CPU can make in a second. Threads it can make some
	// times as many; to be above that limit for some milliseconds harms nobody.
	forks = 10_000
	// dutyNear is how much of a CPU's time may go into looking when a limit is near:
	// one part in this many.
	dutyNear = 5
)

// Next returns how long a sandbox need not be looked at: how long it would at
// least take it to its nearest limit, growing as fast as it could, from
// Shortest to Longest, and so that looking takes no more than a fifth of a
// CPU's time. It touches nothing.
//
// It leaves no time for being late: who touches memory, as nearly all do, has a
// quarter of the speed that is reckoned with.
func Next(s Sample, l Limits) time.Duration {
	cpus := int64(max(l.CPUs, 1))
	next := Longest
	if l.Memory > 0 {
		next = min(next, until(l.Memory-s.Memory, growth*min(cpus, together)))
	}
	if l.Processes > 0 {
		next = min(next, until(int64(l.Processes-s.Processes), forks*cpus))
	}
	if l.CPU > 0 {
		next = min(next, (l.CPU-s.CPU)/time.Duration(cpus))
	}
	return min(max(next, Shortest, s.Cost*(dutyNear-1)), Longest)
}

// until is how long it takes for an amount at a rate a second, up to Longest.
func until(amount, rate int64) time.Duration {
	return time.Duration(min(float64(amount)/float64(rate), 2*Longest.Seconds()) * float64(time.Second))
}
