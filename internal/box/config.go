package box

import (
	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/seatbelt"
	"github.com/tegmen-dev/tegmen/seccomp"
	"github.com/tegmen-dev/tegmen/workspace"
)

// Config holds the decisions of a Plan about a sandbox. It is data: a Machine starts any
// number of sandboxes from one, at the same time, and never writes into it.
type Config struct {
	Name     string       // for people who list the host's processes; may be empty
	Hostname string       // "" without namespaces
	IDs      ns.IDs       // who commands run as, inside and on the host
	Table    rootfs.Table // without namespaces: what the sandbox may use, at the host's own paths

	Rlimits []ns.Rlimit     // of each process
	Cgroup  cgroup.Settings // no controllers: the sandbox has no cgroup
	Watch   Watch           // the zero Watch looks after nothing

	// KillAlone gives each command a tag, so that it and what descends from it can
	// be killed and the rest of the sandbox lives on.
	KillAlone bool

	// Linux.
	Filter   seccomp.Filter // nil: none
	Umask    int            // of commands
	NoSetID  bool           // no file gets set-user-ID or set-group-ID bits
	NoExec   bool           // a command executes its program, and nothing after it
	Audit    bool           // refused system calls are listed in Exit.Refused
	Landlock *ns.Ruleset    // nil: none

	// Placeholders are the directories in which placeholders of protected paths are
	// made for the life of the sandbox.
	Placeholders []protect.Dir
	Watched      []protect.Dir // directories in which guests can make protected paths
	Workspace    string        // that they are in, on the host
	Held         string        // the directory of the host to which is moved what they make

	Overlay *Overlay // nil: the workspace is written to directly

	Seatbelt *seatbelt.Config // macOS; nil: no profile
}

// Overlay is a workspace that is written to in a layer above it.
type Overlay struct {
	Workspace rootfs.Source   // the directory of the host below the layer
	OnDisk    bool            // the layer is in the directory that the table names; otherwise in memory
	Rules     workspace.Rules // what a commit may not change
	Slack     int64           // bytes; see workspace.Overlay
}

// Watch holds the limits that the box itself must enforce while commands run,
// because the kernel does not.
type Watch struct {
	Memory int64    // bytes; Unlimited: nothing
	Pids   int      // processes; Unlimited: nothing
	Kill   bool     // more than Pids processes end the commands; otherwise forks fail, and that is only reported
	OnDisk []string // overlays whose layer takes no memory
}

// Any reports whether there is anything to watch.
func (w Watch) Any() bool { return w.Memory < Unlimited || w.Pids < Unlimited }

// Unlimited is a limit that is none.
const Unlimited = 1<<63 - 1
