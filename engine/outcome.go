package engine

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// Outcome is how a command ended. It rests on evidence: what the engine did
// and what the kernel reports, never on the exit status alone.
type Outcome string

// The outcomes of a command.
const (
	// OutcomeOK is exit status 0, and OutcomeExit another one.
	OutcomeOK   Outcome = "ok"
	OutcomeExit Outcome = "exit"
	// OutcomeSignal is a signal that neither the engine nor a limit sent: its own,
	// another process's inside, or from outside.
	OutcomeSignal Outcome = "signal"
	// OutcomeTimeout: the engine killed it at Limits.Wall, or at its context's deadline.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeCPU: the kernel killed it at Limits.CPUTime, or the engine for what its
	// descendants used.
	OutcomeCPU Outcome = "cpu"
	// OutcomeOOM: it, or what descends from it, was killed at Limits.Memory.
	OutcomeOOM Outcome = "oom"
	// OutcomeOOMHost: the kernel killed it because the machine, or a cgroup around the
	// sandbox, had no memory left.
	OutcomeOOMHost Outcome = "oom-host"
	// OutcomePids is another exit status or a signal, after forks were refused at
	// Limits.Pids; or the watchdog killed it.
	OutcomePids Outcome = "pids"
	// OutcomeDisk: the watchdog killed it at Limits.Workspace, for what was written to
	// its workspace.
	OutcomeDisk Outcome = "disk"
	// OutcomeProtect: the engine killed it for making the same protected path again and
	// again, each time that it was moved aside (ProtectWatch).
	OutcomeProtect Outcome = "protect"
	// OutcomeOutput: the engine killed it after Limits.Discard.
	OutcomeOutput Outcome = "output"
	// OutcomeToolCalls is another exit status, after more than Limits.ToolCalls calls
	// were refused.
	OutcomeToolCalls Outcome = "toolcalls"
	// OutcomeCanceled: the engine killed it when its context was canceled.
	OutcomeCanceled Outcome = "canceled"
	// OutcomeLost: its sandbox ended while it ran.
	OutcomeLost Outcome = "lost"
)

// Outcomes lists all outcomes.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeOK, OutcomeExit, OutcomeSignal, OutcomeTimeout, OutcomeCPU, OutcomeOOM, OutcomeOOMHost,
		OutcomePids, OutcomeDisk, OutcomeProtect, OutcomeOutput, OutcomeToolCalls, OutcomeCanceled, OutcomeLost,
	}
}

// endError is the cause of a context that was ended for a reason of the engine's.
type endError struct{ why Outcome }

func (e *endError) Error() string { return "ended: " + string(e.why) }

// endOf is the outcome when a context ends.
func endOf(ctx context.Context) Outcome {
	var end *endError
	if errors.As(context.Cause(ctx), &end) {
		return end.why
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return OutcomeTimeout
	}
	return OutcomeCanceled
}

// The signals of the kernel's for resource limits, the same on all systems here.
const (
	sigXCPU = syscall.Signal(24)
	sigXFSZ = syscall.Signal(25)
)

// judge attributes the end of a command to what is known to have caused it. cause
// is why the engine killed it, or ""; ending is whether its sandbox was ending.
func (r *Result) judge(e box.Exit, cause Outcome, ending bool, cpuLimit time.Duration) {
	r.ExitCode = e.Status.ExitStatus()
	if e.Status.Signaled() {
		r.Signal = e.Status.Signal()
		r.ExitCode = 128 + int(r.Signal)
	}
	used := e.Used
	killed := r.Signal == syscall.SIGKILL
	failed := r.Signal != 0 || r.ExitCode != 0
	switch {
	case failed && cause != "":
		// Its children, or its channel, may have been ended a moment before itself.
		r.Outcome = cause
	case used.By == box.ByCgroup && used.OOM > 0 && used.OOMKill > 0:
		// Whichever process the kernel took, all of the sandbox's are killed then;
		// a parent may have exited before that.
		r.Outcome = OutcomeOOM
	case failed && used.OOMKill > 0 && !used.OwnOOM:
		r.Outcome = OutcomeOOMHost
	case killed && (used.OOMKill > 0 || used.Swept > 0):
		r.Outcome = OutcomeOOM // that of others, just before it started
	case killed && (ending || e.Ending):
		r.Outcome = OutcomeLost
	case r.usedUp(cpuLimit):
		r.Outcome = OutcomeCPU
	case killed && e.HostOOM:
		r.Outcome = OutcomeOOMHost
	case failed && used.ForkFail > 0:
		r.Outcome = OutcomePids
	case r.Signal != 0:
		r.Outcome = OutcomeSignal
	case r.ExitCode != 0:
		r.Outcome = OutcomeExit
	default:
		r.Outcome = OutcomeOK
	}
}

// usedUp reports whether the kernel ended the command at its limit of CPU time:
// by SIGXCPU, or by SIGKILL a second later. The kernel acts on what it counts by
// ticks, and reports what it measures, which on a busy machine has been seen to
// be a fifth less.
func (r *Result) usedUp(limit time.Duration) bool {
	if limit == UnlimitedTime {
		return false
	}
	used := r.Usage.User + r.Usage.System
	switch r.Signal {
	case sigXCPU:
		return used >= limit/2
	case syscall.SIGKILL:
		return used >= (limit+time.Second)/4*3
	}
	return false
}
