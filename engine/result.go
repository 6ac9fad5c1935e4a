package engine

import (
	"syscall"
	"time"
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
	Usage    Usage
	Started  time.Time
	Timing   Timing
	Dropped  []Dropped // as in the Plan
}

// Outcome is how a command ended. It rests on evidence: what the engine did
// and what the kernel reports, never on the exit status alone.
type Outcome string

// The outcomes of a command.
const (
	OK       Outcome = "ok"       // exit status 0
	Exit     Outcome = "exit"     // another exit status
	Signaled Outcome = "signal"   // a signal that the engine did not send
	Timeout  Outcome = "timeout"  // the engine killed it at Limits.Wall
	CPU      Outcome = "cpu"      // the kernel killed it at Limits.CPUTime
	Canceled Outcome = "canceled" // the engine killed it when its context ended
	Lost     Outcome = "lost"     // its sandbox ended while it ran
)

// Usage is what the command and the descendants it waited for have used, as
// wait4(2) reports it.
type Usage struct {
	Wall         time.Duration // from start to end
	User, System time.Duration // CPU time
	MaxRSS       Bytes         // of the largest process
}

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
