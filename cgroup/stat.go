package cgroup

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stat is the usage of a cgroup since its creation. A field is 0 if the kernel is too
// old to report it or its controller is not turned on.
type Stat struct {
	CPU, User, System time.Duration // CPU time: in all, in user mode, in the kernel
	Throttled         int64         // periods in which the CPU limit was used up
	ThrottledTime     time.Duration // time spent waiting for the next period, summed over threads
	Memory            int64         // bytes in use
	PeakMemory        int64         // the most bytes in use at any time (Linux 5.19)
	Pids              int64         // processes and threads that exist
	PeakPids          int64         // the most of them at any time (Linux 6.11)
	Read, Written     int64         // bytes read from and written to block devices
	Events            Events        // how often limits took effect
}

// Events counts how often limits took effect.
type Events struct {
	High     int64 // MemoryHigh was exceeded
	Max      int64 // Memory was reached, and the kernel reclaimed memory or refused it
	OOM      int64 // Memory was reached, and nothing could be reclaimed
	OOMKill  int64 // processes that the OOM killer killed, for this limit or for the machine
	ForkFail int64 // forks that Pids refused
}

// fields parses "key value" lines. It skips lines without a number, since the kernel
// may add anything.
func fields(text string) map[string]int64 {
	m := make(map[string]int64)
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			m[key] = n
		}
	}
	return m
}

// number parses a file of one number; "max" and "" are 0.
func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64) // 0 on error, as documented
	return n
}

// ioBytes adds up the lines of io.stat, one a device: "8:0 rbytes=1 wbytes=2 …".
func ioBytes(text string) (read, written int64) {
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "rbytes":
			read += number(value)
		case "wbytes":
			written += number(value)
		}
	}
	return read, written
}

// stat combines the files of the controllers that are turned on; read returns a file's
// text, or "". CPU time is always available.
func stat(controllers []string, read func(name string) string) Stat {
	on := func(controller, name string) string {
		if !slices.Contains(controllers, controller) {
			return ""
		}
		return read(name)
	}
	cpu, memory := fields(read("cpu.stat")), fields(on("memory", "memory.events.local"))
	us := func(key string) time.Duration { return time.Duration(cpu[key]) * time.Microsecond }
	s := Stat{
		CPU: us("usage_usec"), User: us("user_usec"), System: us("system_usec"),
		Throttled: cpu["nr_throttled"], ThrottledTime: us("throttled_usec"),
		Memory: number(on("memory", "memory.current")), PeakMemory: number(on("memory", "memory.peak")),
		Pids: number(on("pids", "pids.current")), PeakPids: number(on("pids", "pids.peak")),
		Events: Events{High: memory["high"], Max: memory["max"], OOM: memory["oom"], OOMKill: memory["oom_kill"]},
	}
	// pids.events.local exists since 6.12. Before, pids.events counts by the cgroup of the
	// forking process, which is the same in a cgroup without children.
	pids := on("pids", "pids.events.local")
	if pids == "" {
		pids = on("pids", "pids.events")
	}
	s.Events.ForkFail = fields(pids)["max"]
	s.Read, s.Written = ioBytes(on("io", "io.stat"))
	return s
}
