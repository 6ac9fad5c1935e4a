//go:build linux && (amd64 || arm64)

package setup

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Steps whose failure has a cause that a caller can name: StepError.What.
const (
	FindMountPoint = "find mount point"
	MountProc      = mountStep + procfs

	mountStep = "mount " // and a file system's type
	procfs    = "proc"
)

// check is a source and the identity that the copy of it turned out to have.
type check struct {
	source rootfs.Source
	stat   *unix.Statx_t
}

const openTreeFlags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_SYMLINK_NOFOLLOW

// open takes a detached copy of each host tree in the table, unless a process with
// more privileges has taken them already.
func (t *tree) open(nodes rootfs.Table, from *Sources) {
	if from != nil {
		t.copies = from.args()
		return
	}
	p := t.p
	for _, n := range nodes {
		for _, tree := range n.Trees() {
			open := p.Do("open", tree.Path, unix.SYS_OPEN_TREE, launch.Int(cwd), p.Str(tree.Path), launch.Int(openTreeFlags))
			t.copied(tree, open.Slot().Arg())
		}
	}
}

// copied has a copy of a tree compared with what the table means.
func (t *tree) copied(tree rootfs.Tree, fd launch.Arg) {
	stat, addr := launch.Out[unix.Statx_t](t.p)
	flags, mask := launch.Int(rootfs.StatFlags), launch.Int(rootfs.StatMask)
	t.p.Do("stat", tree.Path, unix.SYS_STATX, fd, t.p.Str(""), flags, mask, addr)
	t.copies[tree.Name] = fd
	t.checks = append(t.checks, check{tree.Source, stat})
}

// openInside copies what is at a mount point, and will be mounted there.
func (t *tree) openInside(n rootfs.Node, at launch.Arg) {
	flags := launch.Int(openTreeFlags | unix.AT_EMPTY_PATH)
	t.copied(n.Trees()[0], t.p.Do("open", n.Path, unix.SYS_OPEN_TREE, at, t.p.Str(""), flags).Slot().Arg())
}

// verify returns an error unless what was mounted is what the table means. The
// copies held the inodes, so the answer cannot go stale. It comes after the mounts
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

// clearUmask makes new files get exactly the modes asked for.
func (t *tree) clearUmask() { t.p.Do("set umask", "", unix.SYS_UMASK, launch.Int(0)) }

// enter makes the first node of the table the root, with the host's tree still
// reachable as the mount on top of it; leave removes that.
//
// The new root is mounted over /proc, which every host has and no later step needs:
// id maps are written through a descriptor opened before.
func (t *tree) enter() {
	p, root := t.p, t.table[0]
	t.clearUmask()
	const at = "/proc"
	// Nothing mounted here may propagate to the host, and pivot_root refuses
	// shared mounts.
	none := launch.Int(0)
	p.Do("make private", "/", unix.SYS_MOUNT, none, p.Str("/"), none, launch.Int(unix.MS_REC|unix.MS_PRIVATE))
	switch root.Kind {
	case rootfs.Static:
		const flags = unix.MS_NOSUID | unix.MS_NODEV
		mountFS(p, mountStep+"tmpfs", "/", "tmpfs", at, flags, "mode=755,size=4m,nr_inodes=4096")
		chdir(p, "enter", "/", at)
	case rootfs.Bind:
		t.attach(root, launch.Int(cwd), at, 0)
		chdir(p, "enter", "/", at)
	case rootfs.Overlay:
		t.rootOverlay(root, at)
	}
	p.Do("pivot_root", "/", unix.SYS_PIVOT_ROOT, p.Str("."), p.Str("."))
}

func (t *tree) leave() {
	// The current directory is the new root; the mount on top of it is removed
	// (pivot_root(2), NOTES).
	chdir(t.p, "enter", "/", "/")
	t.p.Do("unmount the host", "", unix.SYS_UMOUNT2, t.p.Str("."), launch.Int(unix.MNT_DETACH))
}

// build puts the nodes in place. It comes after enter.
func (t *tree) build(nodes rootfs.Table) {
	views := slices.ContainsFunc(nodes, func(n rootfs.Node) bool { return n.Kind == rootfs.View })
	if views {
		t.openStage()
	}
	for _, n := range nodes {
		t.node(n)
	}
	if views {
		t.closeStage()
	}
	for _, n := range nodes {
		if n.Kind == rootfs.Proc {
			t.setQuotas(n.Path)
			t.mask(n) // needs /dev/null
		}
	}
}

// setQuotas sets limits of the sandbox's user namespace (namespaces(7), Linux 4.9),
// while its /proc/sys is still writable.
//
// A user namespace inside the sandbox would give a guest that namespace's
// capabilities. It could enter a new UTS namespace, and so escape the kill of its
// process tree, and reach kernel code that is not meant for it. inotify instances
// have a limit because they count for the host's user as well.
func (t *tree) setQuotas(proc string) {
	for _, q := range []struct{ name, value string }{{"max_user_namespaces", "0"}, {"max_inotify_instances", "64"}} {
		file := proc + "/sys/user/" + q.name
		fd := openAt(t.p, "open", file, cwd, file, unix.O_WRONLY, 0).Slot().Arg()
		write(t.p, file, fd, q.value)
		t.close(fd)
	}
}

// mountCgroupBelow mounts a cgroup2, if that can be, where only mountinfo shows it: below the
// directory that is there, which is read-only.
func mountCgroupBelow(p *launch.Program, at string) {
	const fstype = "cgroup2"
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY
	dir := p.Do("open", at, unix.SYS_OPEN_TREE, launch.Int(cwd), p.Str(at),
		launch.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)).Slot().Arg()
	mountFS(p, mountStep+fstype, at, fstype, at, flags, "").Try()
	p.Do("mount", at, unix.SYS_MOVE_MOUNT, dir, p.Str(""), launch.Int(cwd), p.Str(at),
		launch.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
	p.Do("close", at, unix.SYS_CLOSE, dir)
}

// seal makes each Static node read-only: it was writable only to be filled.
func (t *tree) seal(nodes rootfs.Table) {
	for _, n := range nodes {
		if n.Kind == rootfs.Static {
			t.setattr(n, launch.Int(cwd), n.Path, 0, unix.MOUNT_ATTR_RDONLY)
		}
	}
	if at := nodes.Cgroup(); at != "" {
		mountCgroupBelow(t.p, at)
	}
}

func (t *tree) node(n rootfs.Node) {
	if n.Path == "/" {
		return
	}
	p := t.p
	mode := "mode=" + strconv.FormatUint(uint64(n.Mode), 8)
	switch n.Kind {
	case rootfs.Dir:
		// A root from the host may have it already.
		mkdir(p, n.Path, n.Mode).Try()
	case rootfs.Symlink:
		p.Do("symlink", n.Path, unix.SYS_SYMLINKAT, p.Str(n.Data), launch.Int(cwd), p.Str(n.Path))
	case rootfs.File:
		t.file(n)
	case rootfs.Bind, rootfs.Device:
		t.makeMountPoint(n, n.Source.Dir)
		at := t.openMountPoint(n)
		if t.layout.Inside[n.Path] {
			t.openInside(n, at)
		}
		t.attach(n, at, "", unix.MOVE_MOUNT_T_EMPTY_PATH)
		t.close(at)
	case rootfs.Static:
		t.static(n, mode+",size=1m,nr_inodes=256")
	case rootfs.Tmpfs:
		flags := unix.MS_NOSUID | unix.MS_NODEV
		if n.NoExec {
			flags |= unix.MS_NOEXEC
		}
		t.takeStash(n)
		t.mount(n, "tmpfs", flags, mode+limits(n))
	case rootfs.Overlay:
		t.overlay(n)
	case rootfs.View:
		t.view(n)
	case rootfs.Devpts:
		t.mount(n, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,max=64")
	case rootfs.Proc:
		if !t.hasProc {
			t.mountProc(n.Path)
		}
	default:
		panic("setup: no node of kind " + n.Kind.String())
	}
}

func (t *tree) file(n rootfs.Node) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC | unix.O_NOFOLLOW
	fd := openAt(t.p, "create", n.Path, cwd, n.Path, flags, n.Mode).Slot().Arg()
	if n.Data != "" {
		write(t.p, n.Path, fd, n.Data)
	}
	t.p.Do("close", n.Path, unix.SYS_CLOSE, fd)
}

// procFlags are the same everywhere: the kernel lets a user namespace mount a procfs
// only with at least the restrictions of one that it sees already.
const procFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountProc mounts the procfs of the sandbox's pid namespace. A process that is
// still being started shares the host's memory and has all capabilities of the
// namespace. hidepid=ptraceable (Linux 5.8) hides it, so a guest cannot, say, write
// its oom_score_adj, which is also the host's.
func (t *tree) mountProc(at string) {
	t.mount(rootfs.Node{Path: at}, procfs, procFlags, "hidepid=ptraceable")
}

// mask hides the parts of a procfs that show or control more than the sandbox's
// processes. It hides what runc hides.
func (t *tree) mask(n rootfs.Node) {
	p := t.p
	for _, name := range n.Masked {
		if file := path.Join(n.Path, name); strings.HasSuffix(name, "/") {
			mountFS(p, "mask", file, "tmpfs", file, procFlags|unix.MS_RDONLY, "mode=555,nr_inodes=1")
		} else {
			bindMount(p, "mask", "/dev/null", file, 0)
		}
	}
	if n.Cgroups != "" {
		file := path.Join(n.Path, "cgroups")
		bindMount(p, "replace", n.Cgroups, file, 0)
		t.setattr(rootfs.Node{Path: file}, launch.Int(cwd), file, 0, unix.MOUNT_ATTR_RDONLY)
	}
	for _, name := range n.Locked {
		file := path.Join(n.Path, name)
		bindMount(p, "lock", file, file, unix.MS_REC)
		t.setattr(rootfs.Node{Path: file}, launch.Int(cwd), file, 0, unix.MOUNT_ATTR_RDONLY)
	}
}
