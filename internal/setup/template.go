//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// A Template program builds what the sandboxes of one table share. When it has
// run, UserFD and MountFD hold, in the host's descriptor table, the namespaces
// it was built in; no process is left. The caller closes them.
type Template struct {
	Program         *launch.Program
	Flags           uint64
	UserFD, MountFD *launch.Slot
	tree            *tree
}

// Verify is as for Init.
func (t *Template) Verify() error { return t.tree.verify() }

// NewTemplate returns the program. The table's root is not an Overlay and
// nothing from the host stands on what a sandbox has for itself.
//
// The outer process shares the host's descriptor table, only to leave the
// namespaces there. The inner one, with a table of its own, does everything
// else. Both are in a pid namespace that ends with them.
func NewTemplate(c Config) *Template {
	inner := launch.NewProgram(256)
	t := &tree{p: inner, table: c.Table}
	idMaps(inner, c.IDs, c.ProcFD)
	inner.Phase(launch.Mounts)
	shared, own := c.Table.Split()
	t.open(shared, c.Sources)
	t.enter()
	for _, n := range own {
		if n.Kind == rootfs.Proc {
			// A procfs of this pid namespace, which will be empty: a sandbox
			// may mount its own only where it sees one.
			t.proc(n.Path)
		}
	}
	t.leave()
	t.build(shared)
	for _, n := range own {
		if c.Table.Holder(n.Path).Kind == rootfs.Static {
			t.point(n, true)
		}
	}
	t.seal()

	outer := launch.NewProgram(4)
	outer.Clone("start builder", launch.CloneArgs{Flags: unix.CLONE_VFORK}, inner)
	ns := func(name string) *launch.Slot {
		return outer.Do("open", "/proc/self/ns/"+name, unix.SYS_OPENAT, launch.Int(c.ProcFD), outer.Str("self/ns/"+name), launch.Int(unix.O_RDONLY|unix.O_CLOEXEC), launch.Int(0)).Slot()
	}
	return &Template{
		Program: outer,
		Flags:   unix.CLONE_FILES | unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		UserFD:  ns("user"),
		MountFD: ns("mnt"),
		tree:    t,
	}
}

// From makes a sandbox from the namespaces of a template. The kernel copies
// its dozen mounts instead of the host's, locked: a mount that comes from
// another user namespace cannot be changed or removed.
//
// networkFD is a network namespace made by Network, or -1 to make one now.
func From(c Config, userFD, mountFD, networkFD int) *Init {
	p := launch.NewProgram(96)
	t := &tree{p: p, table: c.Table}
	dieWithHost(p)
	idMaps(p, sameIDs(c.IDs), c.ProcFD)
	p.Phase(launch.Mounts)
	t.anyMode()
	_, own := c.Table.Split()
	t.build(own)
	if networkFD < 0 {
		loopback(p)
	}
	outer := launch.NewProgram(6)
	finish(p, outer, c)
	outer.Do("enter", "template", unix.SYS_SETNS, launch.Int(userFD), launch.Int(unix.CLONE_NEWUSER))
	outer.Do("enter", "template", unix.SYS_SETNS, launch.Int(mountFD), launch.Int(unix.CLONE_NEWNS))
	flags := uint64(Namespaces)
	if networkFD >= 0 {
		outer.Do("enter", "network", unix.SYS_SETNS, launch.Int(networkFD), launch.Int(unix.CLONE_NEWNET))
		flags &^= unix.CLONE_NEWNET
	}
	pid := outer.Clone("start init", launch.CloneArgs{Flags: flags | unix.CLONE_PARENT | unix.CLONE_VFORK}, p)
	return &Init{Program: outer, PID: pid, tree: t}
}

// Network returns a program that makes a network namespace, with lo up, for
// one sandbox of a template. The slot holds it, in the host's descriptor
// table; the caller closes it. Making one takes the kernel longer than all
// the rest of a sandbox, so it is worth doing ahead. A used one is never used
// again.
func Network(c Config, userFD int) (*launch.Program, uint64, *launch.Slot) {
	p := launch.NewProgram(8)
	p.Do("enter", "template", unix.SYS_SETNS, launch.Int(userFD), launch.Int(unix.CLONE_NEWUSER))
	p.Do("make network namespace", "", unix.SYS_UNSHARE, launch.Int(unix.CLONE_NEWNET))
	loopback(p)
	fd := p.Do("open", "/proc/self/ns/net", unix.SYS_OPENAT, launch.Int(c.ProcFD), p.Str("self/ns/net"), launch.Int(unix.O_RDONLY|unix.O_CLOEXEC), launch.Int(0)).Slot()
	return p, unix.CLONE_FILES, fd
}
