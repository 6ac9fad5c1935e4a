package engine

import (
	"github.com/tegmen-dev/tegmen/internal/layout"
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
	Proc      []string          // which of the names that matter are in /proc
	Hard      map[string]uint64 // this process's hard resource limits, by their names in ulimit: "nofile"

	// Lookup finds a file of the host, following symbolic links but not the
	// magic ones of /proc. Only Compile asks.
	Lookup func(path string) (layout.Source, error)
}
