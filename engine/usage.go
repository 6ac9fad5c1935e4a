package engine

import (
	"fmt"
	"strings"
	"time"
)

// Usage is what a command has used. Wall, User, System and MaxRSS are of the
// command and the descendants it waited for, as wait4(2) reports them. The rest
// is of the whole sandbox while the command ran, with whatever else ran in it, as
// By has counted; all 0 where By is "".
type Usage struct {
	Wall         time.Duration // from start to end
	User, System time.Duration // CPU time
	MaxRSS       Bytes         // of the largest process; not less than this process had when it started the command, which begins in its memory

	By            string        // cgroup: the kernel has counted; watchdog: this process has looked from time to time
	CPU           time.Duration // of all processes, also those nobody waited for
	Memory        Bytes         // the most the sandbox has had at a time since its start; with a cgroup from Linux 5.19
	Pids          int           // the most processes and threads at a time since its start; with a cgroup from Linux 6.11
	Read, Written Bytes         // from and to block devices; only with a cgroup and Limits.IO
}

// Event is a limit that was reached while a command ran, by whatever ran in its
// sandbox, also where the command went on and ended well.
type Event struct {
	Limit  string // as in Plan.Limits: "memory"
	Count  int64  // how often, as far as is known; at least 1
	Detail string // what was observed: "memory.events.local: oom 1, oom_kill 3"
}

// reading is what a sandbox has used from its start to a moment.
type reading struct {
	by            string
	cpu           time.Duration
	memory        Bytes // the most so far
	pids          int   // the most so far
	empty         bool  // there is no process, so nothing changes until a command starts
	read, written Bytes

	oom, oomKill int64 // memory could not be had; processes were killed for that
	ownOOM       bool  // ever: a kill may be counted some time after what it is for
	swept        int64 // all processes were killed for that
	reclaimed    int64 // memory was at its limit
	forkFail     int64
	throttled    int64 // periods in which CPUs was used up
	high         int64
}

// since is what has been used, and has happened, from an earlier moment on.
func (r reading) since(b reading) reading {
	r.cpu -= b.cpu
	r.read, r.written = r.read-b.read, r.written-b.written
	r.oom, r.oomKill, r.reclaimed, r.forkFail = r.oom-b.oom, r.oomKill-b.oomKill, r.reclaimed-b.reclaimed, r.forkFail-b.forkFail
	r.swept -= b.swept
	r.throttled, r.high = r.throttled-b.throttled, r.high-b.high
	return r
}

// use is the time and memory of a command, from what wait4 reports and a reading.
func use(wall time.Duration, u rusage, r reading) Usage {
	return Usage{
		Wall: wall, User: u.user, System: u.system, MaxRSS: u.maxRSS,
		By: r.by, CPU: r.cpu, Memory: r.memory, Pids: r.pids, Read: r.read, Written: r.written,
	}
}

// events lists what a reading tells of limits.
func (r reading) events() (list []Event) {
	add := func(limit string, count int64, detail string, args ...any) {
		if count > 0 {
			list = append(list, Event{limit, count, fmt.Sprintf(detail, args...)})
		}
	}
	switch {
	case r.by == byCgroup:
		add("memory", max(r.oom, min(r.oomKill, 1), min(r.reclaimed, 1)), "memory.events.local: max %d, oom %d, oom_kill %d", r.reclaimed, r.oom, r.oomKill)
		add("memoryhigh", r.high, "memory.events.local: high %d", r.high)
		add("pids", r.forkFail, "pids.events: max %d", r.forkFail)
		add("cpus", r.throttled, "cpu.stat: nr_throttled %d", r.throttled)
	default:
		add("memory", r.oom, "the watchdog saw more in use: %s", r.memory)
		add("pids", r.forkFail, "the watchdog saw all in use: %d", r.pids)
	}
	return list
}

// limitEvents adds what the engine and the command's end tell.
func (r *Result) limitEvents(c *Cmd, used reading) {
	r.Events = append(r.Events, used.events()...)
	add := func(limit, detail string) { r.Events = append(r.Events, Event{limit, 1, detail}) }
	switch r.Outcome {
	case Timeout:
		add("wall", "the engine killed it after "+r.Usage.Wall.Round(time.Millisecond).String())
	case Disk:
		add("workspace", c.sandbox.overBudget())
	case ToolCalls:
		add("toolcalls", "a call was refused")
	}
	if r.Outcome == CPU || r.Usage.CPU >= c.sandbox.plan.limits.CPUTime {
		by := ""
		switch cause := c.cause.Load(); {
		case cause != nil && *cause == CPU:
			by = "the engine killed it: "
		case r.Outcome == CPU:
			by = "the kernel killed it: "
		}
		add("cputime", fmt.Sprintf("%sit used %s, and the sandbox %s", by, r.Usage.User+r.Usage.System, r.Usage.CPU))
	}
	if r.Signal == sigXFSZ {
		add("filesize", "it was killed by SIGXFSZ")
	}
	var cut []string
	for _, s := range []struct {
		name string
		cut  bool
	}{{"stdout", r.TruncatedStdout}, {"stderr", r.TruncatedStderr}} {
		if s.cut {
			cut = append(cut, s.name)
		}
	}
	if len(cut) > 0 {
		add("output", "more was written to "+strings.Join(cut, " and ")+" than is kept")
	}
	if r.Outcome == Output {
		add("discard", "the engine killed it")
	}
	for _, full := range c.sandbox.box.full() {
		add(full.limit, full.detail)
	}
}
