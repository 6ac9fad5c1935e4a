//go:build linux && (amd64 || arm64)

package setup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// NewIDMap returns a user namespace for idmapped mounts (mount_setattr(2), Linux
// 5.12): in such a mount root's files are a user's and group's, and what these make is
// root's; and the other way round, so that no file is without an owner. It must be
// called by root with CAP_SETUID and CAP_SETGID. pause and pipe are as in Config. The
// caller closes the file.
func NewIDMap(uid, gid int, pause, pipe *os.File) (*os.File, error) {
	// Only a process can be in a namespace whose maps are still to be written.
	path := "/proc/self/fd/" + strconv.Itoa(int(pause.Fd()))
	pid, err := syscall.ForkExec(path, []string{"tegmen-idmap"}, &syscall.ProcAttr{
		Files: []uintptr{pipe.Fd()},
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, GidMappingsEnableSetgroups: true, Pdeathsig: unix.SIGKILL,
			UidMappings: swapped(uid), GidMappings: swapped(gid),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make user namespace for id maps: %w", err)
	}
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/user")
	errs := []error{err, unix.Kill(pid, unix.SIGKILL)} // a child that has not been waited for
	for {
		if _, err = unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			break
		}
	}
	if err = errors.Join(append(errs, err)...); err != nil && f != nil {
		err = errors.Join(err, f.Close())
	}
	return f, err
}

// swapped is an id map that exchanges 0 and an id above it, and keeps all others.
func swapped(id int) []syscall.SysProcIDMap {
	const all = 1<<32 - 1
	m := []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}, {ContainerID: id, HostID: 0, Size: 1}}
	if id > 1 {
		m = append(m, syscall.SysProcIDMap{ContainerID: 1, HostID: 1, Size: id - 1})
	}
	return append(m, syscall.SysProcIDMap{ContainerID: id + 1, HostID: id + 1, Size: all - id - 1})
}

// MapIDs makes a detached mount an idmapped one. It is EINVAL if the file system
// cannot have them.
func MapIDs(mount int, idmap *os.File) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(idmap.Fd())}
	if err := unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	return nil
}

// TryIDMap reports why a directory cannot be in an idmapped mount; nil: it can.
func TryIDMap(path string, idmap *os.File) error {
	fd, err := unix.OpenTree(cwd, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("open_tree: %w", err)
	}
	return errors.Join(MapIDs(fd, idmap), unix.Close(fd))
}
