package box

import (
	"os"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/workspace"
)

// A Machine starts sandboxes. Its methods may be called concurrently.
type Machine interface {
	// Start starts a sandbox and returns when commands can enter it.
	Start(*Config) (*Started, error)
	Diagnose() []Finding // tries what sandboxes need here
	Close() error        // after all sandboxes have ended
}

// Started is a sandbox that has just been started.
type Started struct {
	Box    Box    // which the caller kills and waits for
	Timing Timing // of this start
	// Private is the sandbox's own directory on the host, with tmp and workspace in
	// it; "" where it has a view of its own of files. Text files for a command go
	// beneath it where TextFiles is set, and are descriptors otherwise.
	Private   string
	TextFiles bool    // see Private
	Layers    *Layers // of an overlay; nil without one
}

// Layers are what an overlaid workspace consists of. They outlive the sandbox.
type Layers struct {
	*workspace.Overlay
	Discard func() error // closes them, and removes what is on disk
}

// A Box is a running sandbox. Its methods may be called concurrently.
type Box interface {
	// Exec starts a command. Its error is an ExecError if the program cannot be
	// executed, as far as that is known already, and ErrClosed if the sandbox is
	// ending. The caller calls Wait and then Release of the Process.
	Exec(Request) (Process, error)
	// Terminal opens a pseudo-terminal of the sandbox.
	Terminal(WindowSize) (master, slave *os.File, err error)
	// Watch starts to look after Config.Watch, once, before the first command. What
	// is exceeded is reported until nothing is left of the sandbox; then the channel
	// is closed.
	Watch() <-chan Exceeded
	// Usage is what the sandbox has used so far.
	Usage() Usage
	// Held looks for what commands have made that the workspace may not have, and
	// returns what was found since the last call. It may be called after Wait.
	Held() ([]Held, error)
	// Kill ends everything in it, and returns at once.
	Kill()
	// Wait returns when nothing is left of it. It is called once.
	Wait() error
}

// A Process is a command in a Box. Signal, KillTree and Started may be called
// while Wait waits.
type Process interface {
	// Started returns when the program runs, or why it could not be executed. A
	// command that was killed before that has started, as far as anyone can tell. A
	// guest can hold it up, so the caller has a kill pending for the deadline. It is
	// called once.
	Started() (Timing, error)
	// Signal signals the command, or its process group. Its error is
	// os.ErrProcessDone if the command has ended.
	Signal(sig syscall.Signal, group bool) error
	// KillTree kills the command and what descends from it.
	KillTree() error
	// Used is what the sandbox has used since the command was started. It may be
	// called at any time.
	Used() Usage
	// Wait reaps the command when it ends. It is called once.
	Wait() (Exit, error)
	// Release frees what the other methods need; none of them is called any more.
	Release() error
}

// Request is a command to be started.
type Request struct {
	Paths []string   // what to execute: the first that exists
	Argv  []string   // its arguments, with its name first
	Env   []string   // "NAME=value"; all of its environment
	Dir   string     // inside, absolute
	Files []*os.File // become 0, 1, 2, …; nil is the null device
	// Terminal makes Files[0] the controlling terminal.
	Terminal bool
	// Texts are for the command to read, in files called 4, 5, … in TextDir, a
	// directory that is made for it. TextDir is "" where texts are descriptors.
	Texts   []string
	TextDir string // inside, absolute
}

// Exit is how a command ended.
type Exit struct {
	Status       syscall.WaitStatus // as wait4(2) returned it
	User, System time.Duration      // CPU time of it and the descendants it waited for (getrusage(2))
	MaxRSS       int64              // bytes, of the largest of them
	Used         Usage              // by the sandbox since the command was started

	Full    []Full    // private file systems without room
	Refused []Refusal // Config.Audit; sorted
	HostOOM bool      // the kernel has killed processes of the machine for want of memory meanwhile
	Ending  bool      // the sandbox was ending by itself
}

// Full is a private file system without room.
type Full struct {
	Files     bool   // it has room for no more files; otherwise for no more bytes
	Workspace bool   // it is what an overlay over the workspace is written to
	Path      string // inside, absolute
}

// Refusal is a system call that was refused.
type Refusal struct {
	Call   string // its name: "mount"
	Action string // what the command got: "EPERM", "kill"
	Count  int    // how often
}

// Held is what a guest has made at a protected path.
type Held struct {
	Path   string         // on the host, absolute
	Name   string         // the protected path that it belongs to, relative to the workspace
	Why    string         // continues the path: "which editors execute"
	Action protect.Action // what became of it
}

// Exceeded is a limit of Config.Watch that was exceeded.
type Exceeded struct {
	What Resource // which resource
	// Again is set if it was already exceeded at the last look: killing the commands
	// did not help.
	Again bool
	// Killed is set if all commands have been killed for it already.
	Killed bool
}

// Resource is a limited resource.
type Resource int

// The resources of Exceeded.
const (
	Memory Resource = iota + 1
	Pids
	Protected // paths: the same one is made again and again
)

// WindowSize is the size of a terminal in characters.
type WindowSize struct {
	Rows, Cols uint16 // as TIOCSWINSZ takes them
}

// Timing is where the time of a start went.
type Timing struct {
	Namespaces, Mounts, Confine, Exec, Total time.Duration // 0 if the start had no such part
}

// Finding is one thing that Diagnose looked at.
type Finding struct {
	What   string // "user namespaces"
	OK     bool   // it works
	Detail string // what was found
	Remedy string // what to do if it is not OK
}
