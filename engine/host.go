package engine

import (
	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Host is what a machine and an account can do. ProbeHost looks once; tests
// make their own. It is not changed afterwards.
type Host struct {
	OS, Arch string // as runtime.GOOS and GOARCH
	Kernel   string // release, "6.1.0-18-amd64"
	UID, GID int    // effective
	// Become is whether this process is root of the whole machine, or of a
	// container with many users, and may run guests as another user.
	Become bool
	// Mount is whether it may mount on the host (CAP_SYS_ADMIN).
	Mount bool
	// Contained is whether it runs in a user namespace of its own, so that its
	// uid 0 is not the machine's.
	Contained bool
	Cgroup    cgroup.Place // where it may make cgroups, or why nowhere
	Memory    Bytes        // that this process may have: the machine's, or what its own cgroup allows; 0: not known
	CPUs      int          // that it may run on; 0: not known
	Seccomp   bool         // the kernel has filters of system calls
	Landlock  int          // its version of Landlock (landlock(7)); 0 is none
	// TryNamespaces asks the kernel for the namespaces of a sandbox by making
	// some, which takes a moment. Only Compile asks, for a Spec that would go on without;
	// nil stands for a machine that has them.
	TryNamespaces func() error
	// SandboxExec is the path of sandbox-exec(1); only macOS has it.
	SandboxExec string
	// TrySeatbelt runs a program in it, which takes a moment. Only Compile asks, for
	// a Spec that would go on without; nil stands for a machine where it works.
	TrySeatbelt func() error
	Home        string            // of this user; "": not known
	Proc        []string          // which of the names that matter are in /proc
	Hard        map[string]uint64 // this process's hard resource limits, by their names in ulimit: "nofile"

	// Lookup finds a file of the host, following symbolic links but not the
	// magic ones of /proc. Only Compile asks.
	Lookup func(path string) (rootfs.Source, error)
	// Device finds the number of a block device of the host, "8:0". Only Compile
	// asks, for Limits.IO; nil stands for a machine without any.
	Device func(path string) (string, error)
	// ReadFile reads a small file of the host, which is no link. nil reads
	// nothing: linked worktrees of git are then not recognised.
	ReadFile func(path string) ([]byte, error)
}
