//go:build linux && (amd64 || arm64)

package setup

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
)

// idMaps writes the id maps of the calling process's new user namespace.
// setgroups is denied first: without it the kernel refuses a gid map written
// by an unprivileged process, since dropping a group could grant access
// (user_namespaces(7), Linux 3.19).
func idMaps(p *launch.Program, ids ns.IDs, procFD int) {
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

// sameIDs is the map of a namespace nested in one with these ids.
func sameIDs(ids ns.IDs) ns.IDs {
	return ns.IDs{UID: ids.UID, GID: ids.GID, HostUID: ids.UID, HostGID: ids.GID}
}
