package engine

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"
)

// endOf is what it comes to when a context ends.
func endOf(ctx context.Context) Outcome {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Timeout
	}
	return Canceled
}

// judge attributes the end of a command to what is known to have caused it. used
// is what the sandbox has used and run into meanwhile.
func (r *Result) judge(status syscall.WaitStatus, c *Cmd, used reading) {
	r.ExitCode = status.ExitStatus()
	if status.Signaled() {
		r.Signal = status.Signal()
		r.ExitCode = 128 + int(r.Signal)
	}
	cause := c.cause.Load()
	killed := r.Signal == syscall.SIGKILL
	failed := r.Signal != 0 || r.ExitCode != 0
	switch {
	case killed && cause != nil:
		r.Outcome = *cause
	case used.by == byCgroup && used.oom > 0 && used.oomKill > 0:
		// Whichever process the kernel took, all of the sandbox's are killed then;
		// a parent may have exited before that.
		r.Outcome = OOM
	case failed && used.oomKill > 0 && !used.ownOOM:
		r.Outcome = OOMHost
	case killed && (used.oomKill > 0 || used.swept > 0):
		r.Outcome = OOM // that of others, just before it started
	case killed && (c.sandbox.ending() || c.sandbox.box.dying()):
		r.Outcome = Lost
	case r.usedUp(c.sandbox.plan.limits.CPUTime):
		r.Outcome = CPU
	case c.end.hostOOM:
		r.Outcome = OOMHost
	case failed && used.forkFail > 0:
		r.Outcome = Pids
	case r.Signal != 0:
		r.Outcome = Signaled
	case r.ExitCode != 0:
		r.Outcome = Exit
	default:
		r.Outcome = OK
	}
}

// usedUp tells whether the kernel ended the command at its limit of CPU time:
// by SIGXCPU, or by SIGKILL a second later. The kernel acts on what it counts by
// ticks, and reports what it measures, which on a busy machine has been seen to
// be a fifth less.
func (r *Result) usedUp(limit time.Duration) bool {
	if limit == Unlimited {
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

// OutcomeError is a command that did not end OK, where an error is wanted.
type OutcomeError struct {
	Name   string
	Result *Result
}

func (e *OutcomeError) Error() string {
	s := e.Name + ": " + string(e.Result.Outcome)
	switch e.Result.Outcome {
	case Exit:
		s = e.Name + ": exit status " + strconv.Itoa(e.Result.ExitCode)
	case Signaled:
		s = e.Name + ": " + e.Result.Signal.String()
	}
	return s
}
