package sample

import "time"

// A Sample is the usage of a sandbox at some moment.
type Sample struct {
	// Memory is in bytes: anonymous memory, shared memory, files in tmpfs and memfds, and
	// page tables. It is an upper bound of what can be seen. If it is above the limit
	// passed to Sampler.Sample and the Sample is not Partial, the usage really is above
	// the limit: memory that processes share was counted once.
	Memory int64
	// CPU is the CPU time of all processes since the sandbox was opened, or longer, in
	// steps of 10 ms a process. It never decreases.
	CPU time.Duration
	// Processes counts threads, like RLIMIT_NPROC and pids.max, including pid 1.
	Processes int
	// Hidden counts processes that are known to exist but cannot be read. The other
	// fields do not include them.
	Hidden int
	// Partial means that time did not suffice to read everything. The Sample has the last
	// known state of the rest, and Memory may be too high. The next Sample continues; a
	// few are enough whatever guests do.
	Partial bool
	// Cost is how long taking the Sample took.
	Cost time.Duration
}

// Limits are the limits of a sandbox. The zero value of a field is no limit.
type Limits struct {
	Memory    int64         // bytes
	CPU       time.Duration // CPU time of all processes together
	Processes int           // threads
	CPUs      int           // how many CPUs its processes can use at once; 0 stands for 1
}

const (
	Shortest = 2 * time.Millisecond   // the shortest pause that Next returns
	Longest  = 250 * time.Millisecond // the longest pause that Next returns

	// growth is how many bytes a CPU can allocate in a second. Touching pages of 4 KiB
	// reached 2.3 GiB in measurements, huge pages 3.3 GiB, and fallocate in a tmpfs, which
	// does not clear pages yet, 10 GiB.
	growth = 10 << 30
	// together is how many CPUs can do so before they slow each other down.
	together = 4
	// forks is how many processes a CPU can create in a second. It can create several
	// times as many threads, but exceeding that limit for some milliseconds is harmless.
	forks = 10_000
	// dutyNear limits sampling near a limit to one part in this many of a CPU's time.
	dutyNear = 5
)

// Next returns how long to wait before the next sample: the time in which the sandbox
// could reach its nearest limit if it grew as fast as possible, at least Shortest and at
// most Longest, and long enough that sampling takes at most a fifth of a CPU's time. It is
// a pure function.
//
// It includes no margin for waking up late: nearly all programs touch the memory that they
// allocate and so grow at a quarter of the assumed speed.
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

// until returns how long an amount takes at a rate per second, at most twice Longest.
func until(amount, rate int64) time.Duration {
	return time.Duration(min(float64(amount)/float64(rate), 2*Longest.Seconds()) * float64(time.Second))
}
