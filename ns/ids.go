//go:build linux && (amd64 || arm64)

package ns

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

// IDs maps the one user of a sandbox to the one it is on the host. The
// process that enters a sandbox has that host id already, so nothing changes
// its uid on the way: that would clear the dumpable flag of the memory it
// shares with the host process.
type IDs struct {
	UID, GID         int // inside
	HostUID, HostGID int // outside, as the parent user namespace counts
}

// maps writes the id maps of the calling process's new user namespace.
// setgroups is denied first: without it the kernel refuses a gid map written
// by an unprivileged process, since dropping a group could grant access
// (user_namespaces(7), Linux 3.19).
func (ids IDs) maps(p *launch.Program, procFD int) {
	put := func(file, text string) {
		fd := p.Do("open", "/proc/"+file, unix.SYS_OPENAT, launch.Int(procFD), p.Str(file), launch.Int(unix.O_WRONLY|unix.O_CLOEXEC), launch.Int(0)).Slot()
		p.Do("write", "/proc/"+file, unix.SYS_WRITE, fd.Arg(), p.Str(text), launch.Int(len(text)))
		p.Do("close", "/proc/"+file, unix.SYS_CLOSE, fd.Arg())
	}
	line := func(inside, outside int) string {
		return strconv.Itoa(inside) + " " + strconv.Itoa(outside) + " 1"
	}
	put("self/setgroups", "deny")
	put("self/uid_map", line(ids.UID, ids.HostUID))
	put("self/gid_map", line(ids.GID, ids.HostGID))
}

// same is the map of a namespace nested in one with these ids.
func (ids IDs) same() IDs {
	return IDs{UID: ids.UID, GID: ids.GID, HostUID: ids.UID, HostGID: ids.GID}
}
