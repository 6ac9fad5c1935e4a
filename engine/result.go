package engine

import (
	"encoding/json"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
)

// Result is what became of a command.
type Result struct {
	Outcome  Outcome
	ExitCode int            // 0 to 255; 128 + Signal when a signal ended it
	Signal   syscall.Signal // 0 when it exited
	Stdout   []byte         // what the command wrote, where Cmd.Stdout is nil
	Stderr   []byte
	// Truncated streams had more than Limits.Output bytes; the rest was read
	// and dropped.
	TruncatedStdout, TruncatedStderr bool
	// Detached is set when processes that the command left behind still held
	// its output when it had ended, so more may have been written.
	Detached bool
	// Run is the id of the run, where the command had tools, and ToolCalls are
	// the calls that it asked for, the first 10,000 in the order in which they were over; refused
	// ones, too, of which it has 1,000. Arguments and values are kept up to Limits.Frame
	// bytes in total, and errors up to 4 KiB each. Tools is what they came to, by full name.
	Run       string
	ToolCalls []broker.Record
	Tools     map[string]broker.ToolUsage
	// Value is what the code returned, as JSON, also when it did not end after
	// that; nil when it returned nothing. Error is the exception that ended it.
	Value json.RawMessage
	Error *broker.CodeError

	Usage Usage
	// Events are the limits that were reached, also by a command that went on
	// after that. What RLIMIT_AS, RLIMIT_NOFILE and RLIMIT_FSIZE refuse without
	// ending the command is not among them: the kernel tells nobody. Nor is what a
	// tmpfs refused where there is room again at the end, or, without a cgroup, forks
	// that were refused for less than the quarter of a second between two looks.
	// With a cgroup, "memory" is also an event when pages of files had to go; what
	// was killed for that stands in its Detail.
	Events  []Event
	Started time.Time
	Timing  Timing
	Level   Level     // as in the Plan
	Dropped []Dropped // as in the Plan
	// Refused lists the system calls that the command and its descendants were
	// refused until its end, with Seccomp.Audit; sorted by name.
	Refused []Refusal
}

// Outcome is how a command ended. It rests on evidence: what the engine did
// and what the kernel reports, never on the exit status alone.
type Outcome string

// The outcomes of a command.
const (
	OK        Outcome = "ok"        // exit status 0
	Exit      Outcome = "exit"      // another exit status
	Signaled  Outcome = "signal"    // a signal that neither the engine nor a limit has sent: its own, another process's inside, or from outside
	Timeout   Outcome = "timeout"   // the engine killed it at Limits.Wall, or at its context's deadline
	CPU       Outcome = "cpu"       // the kernel killed it at Limits.CPUTime, or the engine for what its descendants used
	OOM       Outcome = "oom"       // it, or what descends from it, was killed at Limits.Memory
	OOMHost   Outcome = "oom-host"  // the kernel killed it because the machine, or a cgroup around the sandbox, had no memory left
	Pids      Outcome = "pids"      // another exit status or a signal, after forks were refused at Limits.Pids; or the watchdog killed it
	Disk      Outcome = "disk"      // the watchdog killed it for what was written to its workspace, Limits.Workspace
	Output    Outcome = "output"    // the engine killed it after Limits.Discard
	ToolCalls Outcome = "toolcalls" // another exit status, after it was refused more than Limits.ToolCalls
	Canceled  Outcome = "canceled"  // the engine killed it when its context was canceled
	Lost      Outcome = "lost"      // its sandbox ended while it ran
)

// Timing says where the time of a start went, from the cycle counter that
// each system call of the set-up is stamped with.
type Timing struct {
	Namespaces time.Duration // clone, setns and id maps
	Mounts     time.Duration // the file tree
	Confine    time.Duration // descriptors, limits, privileges
	Exec       time.Duration // execve
	Total      time.Duration // all of it, with the engine's own part
}

// Dropped is a protection that was given up, as Spec.Degrade allows.
type Dropped struct {
	Protection Protection
	Reason     string
}
