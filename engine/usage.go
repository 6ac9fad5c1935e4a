package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// Usage reports the resources that a command used. Wall, User, System and MaxRSS are of the
// command and the descendants it waited for, as wait4(2) reports them. The rest is
// of the whole sandbox while the command ran, with whatever else ran in it, as By
// counted; all 0 if By is "".
type Usage struct {
	Wall         time.Duration // from start to end
	User, System time.Duration // CPU time
	// MaxRSS is of the largest process. It is at least what this process had when it
	// started the command, which begins in its memory.
	MaxRSS Bytes

	By  EnforcerKind  // ByCgroup: the kernel counted; ByWatchdog: this process looked from time to time
	CPU time.Duration // of all processes, even those nobody waited for
	// Memory is the most that the sandbox has had at a time since its start; with a
	// cgroup from Linux 5.19.
	Memory Bytes
	// Pids is the most processes and threads at a time since its start; with a cgroup
	// from Linux 6.11.
	Pids          int
	Read, Written Bytes // from and to block devices; only with a cgroup and Limits.IO
}

// Event is a limit that was reached while a command ran, by whatever ran in its
// sandbox, even if the command went on and ended well.
type Event struct {
	Limit  LimitName // which limit
	Count  int64     // how often, as far as is known; at least 1
	Detail string    // what was observed: "memory.events.local: oom 1, oom_kill 3"
}

// use is the time and memory of a command.
func use(wall time.Duration, e box.Exit) Usage {
	u := Usage{
		Wall: wall, User: e.User, System: e.System, MaxRSS: Bytes(e.MaxRSS),
		CPU: e.Used.CPU, Memory: Bytes(e.Used.Memory), Pids: e.Used.Pids,
		Read: Bytes(e.Used.Read), Written: Bytes(e.Used.Written),
	}
	switch e.Used.By {
	case box.ByCgroup:
		u.By = ByCgroup
	case box.ByWatchdog:
		u.By = ByWatchdog
	}
	return u
}

// eventsOf lists what a sandbox's usage tells of limits.
func eventsOf(u box.Usage) (list []Event) {
	add := func(limit LimitName, count int64, detail string, args ...any) {
		if count > 0 {
			list = append(list, Event{limit, count, fmt.Sprintf(detail, args...)})
		}
	}
	switch {
	case u.By == box.ByCgroup:
		add(LimitMemory, max(u.OOM, min(u.OOMKill, 1), min(u.Reclaimed, 1)),
			"memory.events.local: max %d, oom %d, oom_kill %d", u.Reclaimed, u.OOM, u.OOMKill)
		add(LimitMemoryHigh, u.High, "memory.events.local: high %d", u.High)
		add(LimitPids, u.ForkFail, "pids.events: max %d", u.ForkFail)
		add(LimitCPUs, u.Throttled, "cpu.stat: nr_throttled %d", u.Throttled)
	default:
		add(LimitMemory, u.OOM, "the watchdog saw more in use: %s", Bytes(u.Memory))
		add(LimitPids, u.ForkFail, "the watchdog saw all in use: %d", u.Pids)
	}
	return list
}

// endEvents lists the limits that the end of a command tells of.
func (r *Result) endEvents(e box.Exit, cause Outcome, cpuLimit time.Duration, overBudget string) {
	r.Events = append(r.Events, eventsOf(e.Used)...)
	add := func(limit LimitName, detail string) { r.Events = append(r.Events, Event{limit, 1, detail}) }
	switch r.Outcome {
	case OutcomeTimeout:
		add(LimitWall, "the engine killed it after "+r.Usage.Wall.Round(time.Millisecond).String())
	case OutcomeDisk:
		add(LimitWorkspace, overBudget)
	case OutcomeToolCalls:
		add(LimitToolCalls, "a call was refused")
	}
	if r.Outcome == OutcomeCPU || r.Usage.CPU >= cpuLimit {
		by := ""
		switch {
		case cause == OutcomeCPU:
			by = "the engine killed it: "
		case r.Outcome == OutcomeCPU:
			by = "the kernel killed it: "
		}
		add(LimitCPUTime, fmt.Sprintf("%sit used %s, and the sandbox %s", by, r.Usage.User+r.Usage.System, r.Usage.CPU))
	}
	if r.Signal == sigXFSZ {
		add(LimitFileSize, "it was killed by SIGXFSZ")
	}
	var cut []string
	if r.Streams.TruncatedStdout {
		cut = append(cut, "stdout")
	}
	if r.Streams.TruncatedStderr {
		cut = append(cut, "stderr")
	}
	if len(cut) > 0 {
		add(LimitOutput, "more was written to "+strings.Join(cut, " and ")+" than is kept")
	}
	if r.Outcome == OutcomeOutput {
		add(LimitDiscard, "the engine killed it")
	}
	for _, full := range e.Full {
		switch {
		case full.Files:
			add(LimitTmpFiles, full.Path+" has no file left")
		case full.Workspace:
			add(LimitWorkspace, full.Path+" is full")
		default:
			add(LimitTmp, full.Path+" is full")
		}
	}
}
