//go:build linux && (amd64 || arm64)

package setup

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// tree builds mounts. It opens every path of the host before it enters the new
// root, and every path of the sandbox after, so no symbolic link on either side can
// lead from one into the other.
type tree struct {
	p      *launch.Program
	table  rootfs.Table
	copies map[string]launch.Arg // by the tree's name: a detached copy of the host's tree
	checks []check

	layout *rootfs.Layout

	fromTemplate bool // it has the Stash
	hasProc      bool // the procfs is mounted: that was done before the host was left
	upperFD      int  // as in Config
	masks        int  // how many layers hide something
}

func newTree(p *launch.Program, c Config) *tree {
	return &tree{p: p, table: c.Table, layout: c.Layout, copies: make(map[string]launch.Arg)}
}

func limits(n rootfs.Node) string {
	return ",size=" + strconv.FormatInt(n.Size, 10) + ",nr_inodes=" + strconv.FormatInt(n.Inodes, 10)
}

// openMountPoint refuses a symbolic link anywhere on the way: a hostile root
// filesystem could have one where /proc or /dev should be (CVE-2019-19921,
// CVE-2023-27561).
func (t *tree) openMountPoint(n rootfs.Node) launch.Arg {
	if n.Source.Link != "" { // which is mounted over the link itself
		return openLink(t.p, FindMountPoint, n.Path, launch.Int(cwd), n.Path, noLinks).Slot().Arg()
	}
	return resolve(t.p, FindMountPoint, n.Path, launch.Int(cwd), n.Path, noLinks).Slot().Arg()
}

// attach mounts the detached copy of a host tree.
func (t *tree) attach(n rootfs.Node, at launch.Arg, name string, flags int) {
	fd := t.copies[n.Path]
	attr := uint64(unix.MOUNT_ATTR_NOSUID)
	if n.Kind == rootfs.Device {
		attr |= unix.MOUNT_ATTR_NOEXEC
	} else {
		attr |= unix.MOUNT_ATTR_NODEV
	}
	if n.ReadOnly {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	// Before it is attached: it is never seen writable.
	t.setattr(n, fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr)
	flags |= unix.MOVE_MOUNT_F_EMPTY_PATH
	t.p.Do("mount", n.Path, unix.SYS_MOVE_MOUNT, fd, t.p.Str(""), at, t.p.Str(name), launch.Int(flags))
}

// takeStash copies what a template has kept below a node that is about to be mounted. No
// path leads there then.
func (t *tree) takeStash(n rootfs.Node) {
	if !t.fromTemplate || n.Path != t.layout.StashOn {
		return
	}
	open := t.p.Do("open", n.Path, unix.SYS_OPEN_TREE, launch.Int(cwd), t.p.Str(n.Path), launch.Int(openTreeFlags))
	t.copies[t.layout.Stash.Path] = open.Slot().Arg()
}

// close closes a descriptor early: a process may have few.
func (t *tree) close(fd launch.Arg) { t.p.Do("close", "", unix.SYS_CLOSE, fd) }

func (t *tree) mount(n rootfs.Node, fstype string, flags int, data string) {
	t.makeMountPoint(n, true)
	at := t.openMountPoint(n)
	t.p.Do("enter", n.Path, unix.SYS_FCHDIR, at)
	t.close(at)
	mountFS(t.p, mountStep+fstype, n.Path, fstype, ".", flags, data)
}

// makeMountPoint makes the mount point if the tree there belongs to the sandbox, and
// the template has not made it. Elsewhere it exists, or openMountPoint fails.
func (t *tree) makeMountPoint(n rootfs.Node, dir bool) {
	if !t.table.Makes(n.Path) {
		return // the host's: nothing is made there
	}
	if dir {
		mkdir(t.p, n.Path, 0o755).Try()
		return
	}
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW
	fd := openAt(t.p, "create", n.Path, cwd, n.Path, flags, 0o644).Try().Slot()
	t.p.Do("close", n.Path, unix.SYS_CLOSE, fd.Arg()).Try()
}

// setattr adds attributes of mount_setattr(2) and makes the mount private: a copy of
// a host tree would otherwise be a peer of it, and mounts made on one side would
// appear on the other.
func (t *tree) setattr(n rootfs.Node, fd launch.Arg, name string, flags int, set uint64) {
	attr := t.p.Words(set, 0, unix.MS_PRIVATE, 0) // struct mount_attr
	t.p.Do("protect", n.Path, unix.SYS_MOUNT_SETATTR,
		fd, t.p.Str(name), launch.Int(flags), attr, launch.Int(unix.MOUNT_ATTR_SIZE_VER0))
}
