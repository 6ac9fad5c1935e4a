//go:build linux && (amd64 || arm64)

package mac

import (
	"path/filepath"
	"syscall"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/engine"
)

// macHost is this machine without what only Linux has, and with the stand-in.
func macHost() (engine.Host, error) {
	h, err := engine.ProbeHost()
	if err != nil {
		return h, err
	}
	h.OS, h.Cgroup, h.TryNamespaces, h.Landlock, h.Seccomp = "darwin", cgroup.Place{}, nil, 0, false
	h.Become, h.Contained = false, h.UID == 0
	h.Home = "/Users/u"
	h.SandboxExec, err = filepath.Abs("../testdata/sandbox-exec")
	return h, err
}

// standIn is whether nothing is confined.
const standIn = true

// dup makes a descriptor that children inherit.
func dup(from, to int) error { return syscall.Dup3(from, to, 0) }
