//go:build linux && (amd64 || arm64)

package setup

import (
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// tree builds mounts. Every path of the host is opened before the new root is
// entered and every path of the sandbox after, so no symbolic link on either
// side can lead from one into the other.
type tree struct {
	p      *launch.Program
	table  rootfs.Table
	copies map[string]launch.Arg // by the tree's name: a detached copy of the host's tree
	checks []check

	hasProc bool // mounted already, before the host was left
	upperFD int  // as in Config
}

// check is a source and what the copy of it turned out to be.
type check struct {
	source rootfs.Source
	stat   *unix.Statx_t
}

// Steps whose failure has a cause that a caller can name: StepError.What.
const (
	FindMountPoint = "find mount point"
	MountProc      = mountStep + procfs

	mountStep = "mount " // and a file system's type
	procfs    = "proc"
)

const openTreeFlags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_SYMLINK_NOFOLLOW

// open takes a detached copy of each host tree in the table, unless that has
// been done with more privileges.
func (t *tree) open(nodes rootfs.Table, from *Sources) {
	if from != nil {
		t.copies = from.args()
		return
	}
	t.copies = make(map[string]launch.Arg)
	for _, n := range nodes {
		for _, tree := range n.Trees() {
			fd := t.p.Do("open", tree.Path, unix.SYS_OPEN_TREE, launch.Int(unix.AT_FDCWD), t.p.Str(tree.Path), launch.Int(openTreeFlags)).Slot().Arg()
			stat, addr := launch.Out[unix.Statx_t](t.p)
			t.p.Do("stat", tree.Path, unix.SYS_STATX, fd, t.p.Str(""), launch.Int(rootfs.StatFlags), launch.Int(rootfs.StatMask), addr)
			t.copies[tree.Name] = fd
			t.checks = append(t.checks, check{tree.Source, stat})
		}
	}
}

// verify tells whether what was mounted is what the table means. The copies
// held the inodes, so the answer cannot go stale. It comes after the mounts
// and before any guest.
func (t *tree) verify() error {
	for _, c := range t.checks {
		if c.stat.Mask == 0 {
			continue // the program failed before it came to this one
		}
		if err := c.source.Is(rootfs.Identify(c.stat)); err != nil {
			return err
		}
	}
	return nil
}

// anyMode makes modes mean what they say, whatever the host's umask.
func (t *tree) anyMode() { t.p.Do("set umask", "", unix.SYS_UMASK, launch.Int(0)) }

// setattr adds attributes of mount_setattr(2) and makes the mount private: a
// copy of a host tree would else be a peer of it, so that mounts made on one
// side appear on the other.
func (t *tree) setattr(n rootfs.Node, fd launch.Arg, name string, flags int, set uint64) {
	t.p.Do("protect", n.Path, unix.SYS_MOUNT_SETATTR, fd, t.p.Str(name), launch.Int(flags), t.p.Words(set, 0, unix.MS_PRIVATE, 0), launch.Int(unix.MOUNT_ATTR_SIZE_VER0))
}

// enter makes the first node of the table the root, with the host's tree
// still reachable as the mount on top of it; leave drops that.
//
// The new root is mounted over /proc, which every host has and which no later
// step needs: id maps are written through a descriptor opened before.
func (t *tree) enter() {
	p, root := t.p, t.table[0]
	t.anyMode()
	const at = "/proc"
	// Nothing mounted here may propagate to the host, and pivot_root refuses
	// shared mounts.
	p.Do("make private", "/", unix.SYS_MOUNT, launch.Int(0), p.Str("/"), launch.Int(0), launch.Int(unix.MS_REC|unix.MS_PRIVATE), launch.Int(0))
	switch root.Kind {
	case rootfs.Static:
		p.Do(mountStep+"tmpfs", "/", unix.SYS_MOUNT, p.Str("tmpfs"), p.Str(at), p.Str("tmpfs"), launch.Int(unix.MS_NOSUID|unix.MS_NODEV), p.Str("mode=755,size=4m,nr_inodes=4096"))
		p.Do("enter", "/", unix.SYS_CHDIR, p.Str(at))
	case rootfs.Bind:
		t.attach(root, launch.Int(unix.AT_FDCWD), at, 0)
		p.Do("enter", "/", unix.SYS_CHDIR, p.Str(at))
	case rootfs.Overlay:
		t.overlay(root, at)
	}
	p.Do("pivot_root", "/", unix.SYS_PIVOT_ROOT, p.Str("."), p.Str("."))
}

// overlay stacks a tmpfs on a host directory. Everything is named relative to
// the tmpfs, so no path of the host needs quoting in the mount options.
func (t *tree) overlay(n rootfs.Node, at string) {
	p := t.p
	p.Do(mountStep+"tmpfs", n.Path, unix.SYS_MOUNT, p.Str("tmpfs"), p.Str(at), p.Str("tmpfs"), launch.Int(unix.MS_NOSUID|unix.MS_NODEV), p.Str("mode=755"+limits(n)))
	p.Do("enter", n.Path, unix.SYS_CHDIR, p.Str(at))
	for _, dir := range []string{"lower", "upper", "work", "root"} {
		p.Do("mkdir", dir, unix.SYS_MKDIRAT, launch.Int(unix.AT_FDCWD), p.Str(dir), launch.Int(0o755))
	}
	n.ReadOnly = true
	t.attach(n, launch.Int(unix.AT_FDCWD), "lower", 0)
	p.Do(mountStep+"overlay", n.Path, unix.SYS_MOUNT, p.Str("overlay"), p.Str("root"), p.Str("overlay"), launch.Int(unix.MS_NOSUID|unix.MS_NODEV),
		p.Str("lowerdir=lower,upperdir=upper,workdir=work,userxattr"))
	p.Do("enter", n.Path, unix.SYS_CHDIR, p.Str("root"))
}

func (t *tree) leave() {
	p := t.p
	// The current directory is the new root; what is unmounted is what lies on
	// top of it (pivot_root(2), NOTES).
	p.Do("enter", "/", unix.SYS_CHDIR, p.Str("/"))
	p.Do("unmount the host", "", unix.SYS_UMOUNT2, p.Str("."), launch.Int(unix.MNT_DETACH))
}

// build puts the nodes in place. The root is entered already.
func (t *tree) build(nodes rootfs.Table) {
	for _, n := range nodes {
		t.node(n)
	}
	for _, n := range nodes {
		if n.Kind == rootfs.Proc {
			t.quotas(n.Path)
			t.mask(n) // needs /dev/null
		}
	}
}

// quotas sets limits of the sandbox's user namespace (namespaces(7), Linux
// 4.9), while its /proc/sys can still be written to.
//
// A user namespace inside the sandbox would give a guest the capabilities of
// one: to enter a UTS namespace of its own, by which it would escape the kill
// of its process tree, and to reach kernel code that is not meant for it.
// inotify instances are counted for the host's user, too.
func (t *tree) quotas(proc string) {
	p := t.p
	for _, q := range []struct{ name, value string }{{"max_user_namespaces", "0"}, {"max_inotify_instances", "64"}} {
		file := proc + "/sys/user/" + q.name
		fd := p.Do("open", file, unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), p.Str(file), launch.Int(unix.O_WRONLY|unix.O_CLOEXEC), launch.Int(0)).Slot()
		p.Do("write", file, unix.SYS_WRITE, fd.Arg(), p.Str(q.value), launch.Int(len(q.value)))
		t.done(fd.Arg())
	}
}

// seal makes read-only what was only writable to be filled.
func (t *tree) seal() {
	for _, n := range t.table {
		if n.Kind == rootfs.Static {
			t.setattr(n, launch.Int(unix.AT_FDCWD), n.Path, 0, unix.MOUNT_ATTR_RDONLY)
		}
	}
}

func (t *tree) node(n rootfs.Node) {
	if n.Path == "/" {
		return
	}
	p := t.p
	switch n.Kind {
	case rootfs.Dir:
		// A root that is the host's may have it already.
		p.Do("mkdir", n.Path, unix.SYS_MKDIRAT, launch.Int(unix.AT_FDCWD), p.Str(n.Path), launch.Int(n.Mode)).Try()
	case rootfs.Symlink:
		p.Do("symlink", n.Path, unix.SYS_SYMLINKAT, p.Str(n.Data), launch.Int(unix.AT_FDCWD), p.Str(n.Path))
	case rootfs.File:
		fd := p.Do("create", n.Path, unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), p.Str(n.Path), launch.Int(unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC), launch.Int(n.Mode)).Slot()
		if n.Data != "" {
			p.Do("write", n.Path, unix.SYS_WRITE, fd.Arg(), p.Str(n.Data), launch.Int(len(n.Data)))
		}
		p.Do("close", n.Path, unix.SYS_CLOSE, fd.Arg())
	case rootfs.Bind, rootfs.Device:
		t.point(n, n.Source.Dir)
		at := t.target(n)
		t.attach(n, at, "", unix.MOVE_MOUNT_T_EMPTY_PATH)
		t.done(at)
	case rootfs.Static:
		t.mount(n, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode="+strconv.FormatUint(uint64(n.Mode), 8)+",size=1m,nr_inodes=256")
	case rootfs.Tmpfs:
		flags := unix.MS_NOSUID | unix.MS_NODEV
		if n.NoExec {
			flags |= unix.MS_NOEXEC
		}
		t.mount(n, "tmpfs", flags, "mode="+strconv.FormatUint(uint64(n.Mode), 8)+limits(n))
	case rootfs.Overlay:
		t.stack(n)
	case rootfs.Devpts:
		t.mount(n, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,max=64")
	case rootfs.Proc:
		if !t.hasProc {
			t.proc(n.Path)
		}
	default:
		panic("ns: " + n.Kind.String() + " can only be the root")
	}
}

func limits(n rootfs.Node) string {
	return ",size=" + strconv.FormatInt(n.Size, 10) + ",nr_inodes=" + strconv.FormatInt(n.Inodes, 10)
}

// point makes the mount point, where the tree is the sandbox's own and does not
// have it from its template. Elsewhere it exists, or target says that it does
// not.
func (t *tree) point(n rootfs.Node, dir bool) {
	p := t.p
	if !t.table.Makes(n.Path) {
		return // the host's: nothing is made there
	}
	if dir {
		p.Do("mkdir", n.Path, unix.SYS_MKDIRAT, launch.Int(unix.AT_FDCWD), p.Str(n.Path), launch.Int(0o755)).Try()
		return
	}
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd := p.Do("create", n.Path, unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), p.Str(n.Path), launch.Int(flags), launch.Int(0o644)).Try().Slot()
	p.Do("close", n.Path, unix.SYS_CLOSE, fd.Arg()).Try()
}

// target opens a mount point. A symbolic link anywhere on the way is refused:
// a hostile root filesystem could have one where /proc or /dev should be
// (CVE-2019-19921, CVE-2023-27561).
func (t *tree) target(n rootfs.Node) launch.Arg {
	const how = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	return t.p.Do(FindMountPoint, n.Path, unix.SYS_OPENAT2, launch.Int(unix.AT_FDCWD), t.p.Str(n.Path),
		t.p.Words(unix.O_PATH|unix.O_CLOEXEC, 0, how), launch.Int(24)).Slot().Arg()
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
	t.p.Do("mount", n.Path, unix.SYS_MOVE_MOUNT, fd, t.p.Str(""), at, t.p.Str(name), launch.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|flags))
}

// done closes a descriptor: a process may have few.
func (t *tree) done(fd launch.Arg) { t.p.Do("close", "", unix.SYS_CLOSE, fd) }

func (t *tree) mount(n rootfs.Node, fstype string, flags int, data string) {
	p := t.p
	t.point(n, true)
	at := t.target(n)
	p.Do("enter", n.Path, unix.SYS_FCHDIR, at)
	t.done(at)
	p.Do(mountStep+fstype, n.Path, unix.SYS_MOUNT, p.Str(fstype), p.Str("."), p.Str(fstype), launch.Int(flags), p.Str(data))
}

// procFlags are the same everywhere: the kernel lets a user namespace mount a
// procfs only with at least the restrictions of one that it sees already.
const procFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// proc mounts the procfs of the sandbox's pid namespace. A process that is
// still being started shares the host's memory and has all capabilities of
// the namespace; hidepid=ptraceable (Linux 5.8) keeps it out of sight, so a
// guest cannot, say, write its oom_score_adj, which is the host's too.
func (t *tree) proc(at string) {
	t.mount(rootfs.Node{Path: at}, procfs, procFlags, "hidepid=ptraceable")
}

// mask hides what a procfs tells or lets do beyond the sandbox's processes.
// What is masked is what runc masks.
func (t *tree) mask(n rootfs.Node) {
	p := t.p
	for _, name := range n.Masked {
		if file := path.Join(n.Path, name); strings.HasSuffix(name, "/") {
			p.Do("mask", file, unix.SYS_MOUNT, p.Str("tmpfs"), p.Str(file), p.Str("tmpfs"), launch.Int(procFlags|unix.MS_RDONLY), p.Str("mode=555,nr_inodes=1"))
		} else {
			p.Do("mask", file, unix.SYS_MOUNT, p.Str("/dev/null"), p.Str(file), launch.Int(0), launch.Int(unix.MS_BIND), launch.Int(0))
		}
	}
	for _, name := range n.Locked {
		file := path.Join(n.Path, name)
		p.Do("lock", file, unix.SYS_MOUNT, p.Str(file), p.Str(file), launch.Int(0), launch.Int(unix.MS_BIND|unix.MS_REC), launch.Int(0))
		t.setattr(rootfs.Node{Path: file}, launch.Int(unix.AT_FDCWD), file, 0, unix.MOUNT_ATTR_RDONLY)
	}
}
