//go:build linux && (amd64 || arm64)

package setup

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
)

// writeIDMaps writes the id maps of the calling process's new user namespace. It
// denies setgroups first: otherwise the kernel refuses a gid map written by an
// unprivileged process, since dropping a group could grant access
// (user_namespaces(7), Linux 3.19).
func writeIDMaps(p *launch.Program, ids ns.IDs, procFD int) {
	put := func(file, text string) {
		path := "/proc/" + file
		fd := openAt(p, "open", path, procFD, file, unix.O_WRONLY, 0).Slot().Arg()
		write(p, path, fd, text)
		p.Do("close", path, unix.SYS_CLOSE, fd)
	}
	line := func(inside, outside int) string {
		return strconv.Itoa(inside) + " " + strconv.Itoa(outside) + " 1"
	}
	put("self/setgroups", "deny")
	put("self/uid_map", line(ids.UID, ids.HostUID))
	put("self/gid_map", line(ids.GID, ids.HostGID))
}

// identityMap returns the map of a namespace nested in one with these ids.
func identityMap(ids ns.IDs) ns.IDs {
	return ns.IDs{UID: ids.UID, GID: ids.GID, HostUID: ids.UID, HostGID: ids.GID}
}
