//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// rootDir is the sandbox's root directory as the host sees it: through pid 1, whose root a
// guest cannot change.
func (b *nsBox) rootDir() string { return "/proc/" + strconv.Itoa(b.pid) + "/root" }

// lookInside opens a path below a sandbox's root with O_PATH, for messages: a guest may
// have put anything there, and no link of its leads out.
func lookInside(root, name string, resolve uint64) (fd int, err error) {
	at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: resolve | unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	return unix.Openat2(at, name, &how)
}

// isDirectory reports whether the first of the command's paths that exists is a directory:
// execve(2) says EACCES.
func (p *launched) isDirectory() bool {
	for _, name := range p.paths {
		if !path.IsAbs(name) {
			name = path.Join(p.dir, name)
		}
		fd, err := lookInside(p.root, name, 0)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	return false
}

// noRoom reports whether an overlay has no room for another byte. Its statfs is that of the
// tmpfs with its upper.
func noRoom(root, dir string) bool {
	fd, err := lookInside(root, dir, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	err = unix.Fstatfs(fd, &st)
	return err == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC && st.Blocks > 0 && st.Bfree == 0
}
