package box

import (
	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Host is what a machine and an account can do, as a probe found it. The fields
// are those of engine.Host, which documents them.
type Host struct {
	OS, Arch    string
	Kernel      string
	UID, GID    int
	Become      bool
	Mount       bool
	Contained   bool
	Cgroup      cgroup.Place
	MemoryBytes int64
	CPUs        int
	Seccomp     bool
	Landlock    int

	TryNamespaces func() error
	SandboxExec   string
	TrySeatbelt   func() error
	Home          string
	Proc          []string
	HardLimits    map[string]uint64

	Lookup   func(path string) (rootfs.Source, error)
	Device   func(path string) (string, error)
	ReadFile func(path string) ([]byte, error)
}
