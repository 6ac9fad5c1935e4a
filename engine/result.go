package engine

import (
	"encoding/json"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
)

// Result reports how a command ended, what it wrote and what it used.
type Result struct {
	Outcome  Outcome        // how it ended
	ExitCode int            // 0 to 255; 128 + Signal if a signal ended it
	Signal   syscall.Signal // 0 if it exited
	Stdout   []byte         // what the command wrote, if Cmd.Stdout is nil; see Streams
	Stderr   []byte         // likewise
	Streams  Streams        // what Stdout and Stderr lack
	Code     CodeResult     // of a command with tools
	Usage    Usage          // time, memory and I/O
	// Events are the limits that were reached, even by a command that went on after
	// that. They do not include what RLIMIT_AS, RLIMIT_NOFILE and RLIMIT_FSIZE refuse
	// without ending the command, since the kernel tells nobody; what a tmpfs refused
	// if there is room again at the end; and, without a cgroup, forks that were
	// refused for less than the quarter of a second between two looks. With a cgroup,
	// "memory" is also an event if pages of files had to go; its Detail says what was
	// killed.
	Events []Event
	// Refused lists the system calls that the command and its descendants were
	// refused until its end, with Seccomp.Audit; sorted by name.
	Refused []Refusal
	// Held lists what was made at protected paths of the workspace by then
	// (ProtectWatch); at most 1,000. Of commands that run at once, the first to end has
	// it. See Sandbox.Held as well.
	Held  []Held
	Start StartInfo // when and how it was started
}

// Held is something that was made at a protected path of a workspace.
type Held struct {
	Path string // on the host, absolute
	Name string // the protected path that it belongs to, for FS.AllowWrite: ".vscode"
	Why  string // continues the path: "which editors execute"
	// Action is what became of it.
	Action HeldAction
}

// HeldAction is what became of something that was made at a protected path.
type HeldAction string

// The actions.
const (
	// HeldMoved: it was moved to the user's store, which the command tegmen held lists
	// and restores from.
	HeldMoved HeldAction = "moved"
	// HeldStays: it is still there, since it is executed only when somebody runs it.
	HeldStays HeldAction = "stays"
	// HeldRefused: git tried to replace it, and could not: it is read-only.
	HeldRefused HeldAction = "refused"
)

// Streams says what is missing from a Result's Stdout and Stderr.
type Streams struct {
	// Truncated streams had more than Limits.Output bytes; the rest was read and
	// dropped.
	TruncatedStdout, TruncatedStderr bool
	// Detached is set if processes that the command left behind still held its
	// output when it had ended, so more may have been written.
	Detached bool
}

// CodeResult reports the value that a command with tools returned, and its calls.
type CodeResult struct {
	Run   string            // the id of the run; "" without tools
	Value json.RawMessage   // what the code returned, even if it did not end after that; nil: nothing
	Error *broker.CodeError // the exception that ended it; nil: none
	// ToolCalls are the calls that the command asked for, in the order in which they
	// ended: the first 10,000, and 1,000 of those that were refused. Arguments and
	// values are kept up to Limits.Frame bytes in total, and errors up to 4 KiB each.
	ToolCalls []broker.Record
	Tools     map[string]broker.ToolUsage // all calls, summed up by the tool's full name
}

// StartInfo says how a command was started.
type StartInfo struct {
	At      time.Time // when Start was called
	Timing  Timing    // how long the parts of the start took
	Level   Level     // as in the Plan
	Dropped []Dropped // as in the Plan
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

// Err is nil if the command ended with OutcomeOK, and an *OutcomeError otherwise;
// for code that an exception ended it is that, a *broker.CodeError.
func (r *Result) Err() error {
	switch {
	case r.Code.Error != nil:
		return r.Code.Error
	case r.Outcome != OutcomeOK:
		return &OutcomeError{Name: "command", Result: r}
	}
	return nil
}

// Decode stores the value that the code returned in v, as json.Unmarshal does. Its
// error is Err if the code failed, and ErrInvalid if it returned nothing.
func (r *Result) Decode(v any) error {
	if err := r.Err(); err != nil {
		return err
	}
	if r.Code.Value == nil {
		return invalid("the code returned no value")
	}
	return json.Unmarshal(r.Code.Value, v)
}
