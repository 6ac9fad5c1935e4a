package cgroup

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stat is what a cgroup has used and run into since it was made. What the
// kernel, or a controller that is not on, does not tell is 0.
type Stat struct {
	CPU, User, System time.Duration
	Throttled         int64         // periods in which CPUs was used up
	ThrottledTime     time.Duration // it waited for that, all its threads together
	Memory            int64         // bytes at present
	PeakMemory        int64         // bytes at most (Linux 5.19)
	Pids              int64         // at present
	PeakPids          int64         // at most (Linux 6.11)
	Read, Written     int64         // bytes, from and to block devices
	Events            Events
}

// Events counts what happened at limits.
type Events struct {
	High     int64 // MemoryHigh was passed
	Max      int64 // Memory was reached, and something was reclaimed or refused
	OOM      int64 // Memory was reached, and nothing could be reclaimed
	OOMKill  int64 // processes killed for want of memory, here or in the whole machine
	ForkFail int64 // forks that Pids refused
}

// fields reads a file of "key value" lines. What is no number is passed over:
// the kernel adds keys as it likes.
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

// Field is one number of a file of "key value" lines, or 0.
func Field(text, key string) int64 { return fields(text)[key] }

// number reads a file of one number; "max" and nothing are 0.
func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

// ioBytes adds up what io.stat says of each device: "8:0 rbytes=1 wbytes=2 …".
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

// stat puts together what the files of some controllers say; read returns a
// file's text, or "". The time of the processor is always told.
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
	// The cgroup's own from 6.12 on; before, pids.events counts by whose process
	// it was, which comes to the same in a cgroup without children.
	pids := on("pids", "pids.events.local")
	if pids == "" {
		pids = on("pids", "pids.events")
	}
	s.Events.ForkFail = fields(pids)["max"]
	s.Read, s.Written = ioBytes(on("io", "io.stat"))
	return s
}
