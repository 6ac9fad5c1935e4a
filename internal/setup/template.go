//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// A Template program builds what the sandboxes of one table share. When it has
// run, no process is left, and UserFD and MountFD hold, in the host's descriptor
// table, the namespaces it was built in. The caller closes them.
type Template struct {
	Program         *launch.Program // for one use
	Flags           uint64          // CLONE_…, for launch.Spawner
	UserFD, MountFD *launch.Slot    // see above
	tree            *tree
}

// Verify returns an error if a path of the host was swapped; see Init.Verify.
func (t *Template) Verify() error { return t.tree.verify() }

// NewTemplate returns the program. The table's root must not be an Overlay, and it must
// not be Direct.
//
// The outer process shares the host's descriptor table, only to leave the
// namespaces there. The inner one, with its own table, does everything else. Both
// are in a pid namespace that ends with them.
func NewTemplate(c Config) *Template {
	inner := launch.NewProgram(256)
	t := newTree(inner, c)
	writeIDMaps(inner, c.IDs, c.ProcFD)
	inner.Phase(launch.Mounts)
	t.open(c.Layout.Kept(), c.Sources)
	t.enter()
	for _, n := range c.Layout.Own {
		if n.Kind == rootfs.Proc {
			// A procfs of this pid namespace, which will be empty: a sandbox may
			// mount its own only if it sees one.
			t.mountProc(n.Path)
		}
	}
	t.leave()
	t.build(c.Layout.Shared)
	for _, n := range c.Layout.Own {
		if c.Table.Holder(n.Path).Kind == rootfs.Static {
			t.makeMountPoint(n, true)
		}
		if n.Path == c.Layout.StashOn {
			at := t.openMountPoint(n)
			t.attach(c.Layout.Stash, at, "", unix.MOVE_MOUNT_T_EMPTY_PATH)
			t.close(at)
		}
	}
	t.seal(c.Layout.Shared)

	outer := launch.NewProgram(4)
	outer.Clone("start builder", launch.CloneArgs{Flags: unix.CLONE_VFORK}, inner)
	return &Template{
		Program: outer,
		Flags:   unix.CLONE_FILES | unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWCGROUP,
		UserFD:  openNamespace(outer, "user", c.ProcFD),
		MountFD: openNamespace(outer, "mnt", c.ProcFD),
		tree:    t,
	}
}

// openNamespace opens a namespace of the calling process.
func openNamespace(p *launch.Program, name string, procFD int) *launch.Slot {
	return openAt(p, "open", "/proc/self/ns/"+name, procFD, "self/ns/"+name, unix.O_RDONLY, 0).Slot()
}

// From makes a sandbox from the namespaces of a template. The kernel copies the
// template's dozen mounts instead of the host's, and locks them: a mount that comes
// from another user namespace cannot be changed or removed.
//
// networkFD is a network namespace made by Network, or -1 to make one now.
func From(c Config, userFD, mountFD, networkFD int) *Init {
	p := launch.NewProgram(96)
	t := newTree(p, c)
	t.fromTemplate = true
	dieWithHost(p)
	writeIDMaps(p, identityMap(c.IDs), c.ProcFD)
	p.Phase(launch.Mounts)
	t.clearUmask()
	t.build(c.Layout.Own)
	t.seal(c.Layout.Own)
	if networkFD < 0 {
		loopback(p)
	}
	outer := launch.NewProgram(6)
	finishInit(p, outer, c)
	setns(outer, "template", userFD, unix.CLONE_NEWUSER)
	setns(outer, "template", mountFD, unix.CLONE_NEWNS)
	flags := uint64(Namespaces)
	if networkFD >= 0 {
		setns(outer, "network", networkFD, unix.CLONE_NEWNET)
		flags &^= unix.CLONE_NEWNET
	}
	flags |= unix.CLONE_PARENT | unix.CLONE_VFORK
	pid := outer.Clone("start init", launch.CloneArgs{Flags: flags}, p)
	return &Init{Program: outer, PID: pid, tree: t}
}

// Network returns a program that makes a network namespace, with lo up, for one
// sandbox of a template, and its clone flags. The slot receives the namespace, in
// the host's descriptor table; the caller closes it. Making one takes the kernel
// longer than the rest of a sandbox, so it pays to do it ahead. It must not be used
// for a second sandbox.
func Network(c Config, userFD int) (*launch.Program, uint64, *launch.Slot) {
	p := launch.NewProgram(8)
	setns(p, "template", userFD, unix.CLONE_NEWUSER)
	p.Do("make network namespace", "", unix.SYS_UNSHARE, launch.Int(unix.CLONE_NEWNET))
	loopback(p)
	return p, unix.CLONE_FILES, openNamespace(p, "net", c.ProcFD)
}
