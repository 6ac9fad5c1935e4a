package engine

import (
	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Host describes a machine and an account. ProbeHost returns this one's; a test can
// make its own. An Engine never changes it.
type Host struct {
	OS, Arch string // as runtime.GOOS and GOARCH
	Kernel   string // release, "6.1.0-18-amd64"
	UID, GID int    // effective
	// Become reports whether this process is root of the whole machine, or of a
	// container with many users, and may run guests as another user.
	Become bool
	// Mount reports whether it may mount on the host (CAP_SYS_ADMIN).
	Mount bool
	// Contained reports whether it runs in a user namespace of its own, so that its
	// uid 0 is not the machine's.
	Contained   bool
	Cgroup      cgroup.Place // where it may make cgroups, or why nowhere
	MemoryBytes int64        // that this process may have: the machine's, or what its own cgroup allows; 0: not known
	CPUs        int          // that it may run on; 0: not known
	Umask       int          // of this process, which commands have as well; 0 stands for 022
	Seccomp     bool         // the kernel has filters of system calls
	Landlock    int          // the kernel's version of Landlock (landlock(7)); 0: none

	// TryNamespaces makes the namespaces of a sandbox, which takes a moment, and
	// returns why that fails. Compile asks only for a Spec that accepts less; nil
	// stands for a machine where it works.
	TryNamespaces func() error
	// TryIDMap makes an idmapped mount of a directory (mount_setattr(2), Linux 5.12),
	// which takes a moment, and returns why that fails: its file system may not know
	// them. Compile asks only as root, for what belongs to root; nil stands for a
	// machine where it works.
	TryIDMap func(path string) error
	// SandboxExec is the path of sandbox-exec(1); only macOS has it.
	SandboxExec string
	// TrySeatbelt runs a program in it, which takes a moment, and returns why that
	// fails. Compile asks only for a Spec that accepts less; nil stands for a machine
	// where it works.
	TrySeatbelt func() error
	Home        string            // of this user, as it says itself; "": not known
	Path        string            // where this process looks for programs: PATH; only ViewHost uses it
	Proc        []string          // which of rootfs.ProcEntries are in /proc
	HardLimits  map[string]uint64 // this process's hard resource limits, by their names in ulimit: "nofile"

	// Lookup finds a file of the host, following symbolic links but not the magic
	// ones of /proc. Only Compile asks. nil finds nothing.
	Lookup func(path string) (rootfs.Source, error)
	// LookupLink finds a symbolic link of the host itself, with Source.Link set; links
	// above it are refused. Its error is fs.ErrInvalid if it is none. nil finds nothing:
	// then a link at a protected path is refused.
	LookupLink func(path string) (rootfs.Source, error)
	// Device finds the number of a block device of the host, "8:0". Only Compile
	// asks, for Limits.IO; nil stands for a machine without any.
	Device func(path string) (string, error)
	// ReadFile reads a small file of the host that is no link. nil reads nothing:
	// linked worktrees of git are then not recognised.
	ReadFile func(path string) ([]byte, error)
	// ReadDir lists the names in a directory of the host that is no link. nil lists
	// nothing: linked worktrees of git below a workspace are read-only then.
	ReadDir func(path string) ([]string, error)
	// Mounts lists the host's mounts. Only Compile asks, for ViewHost; nil stands for a
	// machine with one file system.
	Mounts func() ([]rootfs.HostMount, error)
	// HeldDir is where what is held back goes (ProtectWatch), absolute; it is made when
	// it is needed. Guests must not reach it.
	HeldDir string
}

// ProbeHost finds out what this machine and account can do. It starts nothing and
// changes nothing. On a system that has no sandboxes it returns what it knows.
func ProbeHost() (Host, error) {
	h, err := probe()
	if err != nil {
		return Host{}, &Error{Op: "probe host", Err: fromBox(err)}
	}
	return Host(h), nil
}

// check refuses a Host that no plan can be made for.
func (h Host) check() error {
	if h.OS == "" || h.Arch == "" {
		return invalid("a Host needs OS and Arch, as runtime.GOOS and GOARCH; ProbeHost returns this machine's")
	}
	return nil
}

func (h Host) facts() box.Host { return box.Host(h) }
