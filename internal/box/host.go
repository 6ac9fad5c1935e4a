package box

import (
	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Host describes a machine and an account, as a probe found them. The fields are
// those of engine.Host, which documents them.
type Host struct {
	OS, Arch    string       // as runtime.GOOS and GOARCH
	Kernel      string       // its release
	UID, GID    int          // of this process
	Become      bool         // guests can run as another user
	Mount       bool         // it may mount on the host
	Contained   bool         // it runs in a user namespace of its own
	Cgroup      cgroup.Place // where cgroups can be made; zero: nowhere
	MemoryBytes int64        // that this process may have; 0: not known
	CPUs        int          // that it may run on; 0: not known
	Umask       int          // of this process; 0 stands for 022
	Seccomp     bool         // the kernel has filters of system calls
	Landlock    int          // the ABI of Landlock; 0: none

	TryNamespaces func() error            // makes the namespaces of a sandbox; why that fails
	TryIDMap      func(path string) error // makes an idmapped mount of a directory; why that fails
	SandboxExec   string                  // its path; "" without it
	TrySeatbelt   func() error            // runs a program in it; why that fails
	Home          string                  // the home directory of the account
	Path          string                  // where it looks for programs
	Proc          []string                // which of rootfs.ProcEntries are in /proc
	HardLimits    map[string]uint64       // by the names of ulimit: "nofile"

	Lookup func(path string) (rootfs.Source, error) // looks at a path of the host
	// LookupLink looks at a symbolic link of the host, and not at where it leads.
	LookupLink func(path string) (rootfs.Source, error)
	Device     func(path string) (string, error)   // finds the number of a block device: "8:0"
	ReadFile   func(path string) ([]byte, error)   // reads a file of the host
	ReadDir    func(path string) ([]string, error) // lists a directory of the host
	Mounts     func() ([]rootfs.HostMount, error)  // lists the host's mounts
	HeldDir    string                              // where what is held back goes
}
