//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// stack mounts an overlay on a directory that is not the root (Linux 5.11 for
// user namespaces). What it consists of lies in a tmpfs on the same mount point:
// the overlay covers that, and a guest cannot take it off, so what is written is
// reached in the overlay only.
//
// Everything is named relative to that tmpfs, so no path of the host needs
// quoting in the mount options, nor is seen in the list of mounts.
func (t *tree) stack(n rootfs.Node) {
	p := t.p
	stage, upper := "mode=700"+limits(n), ""
	if n.Upper.Path != "" {
		stage, upper = "mode=700,size=64k,nr_inodes=8", "store/"
	}
	t.mount(n, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, stage)
	at := t.target(n) // again: now it is what has been mounted
	p.Do("enter", n.Path, unix.SYS_FCHDIR, at)
	t.done(at)
	mkdir := func(dir string, mode uint32) {
		p.Do("mkdir", dir, unix.SYS_MKDIRAT, launch.Int(unix.AT_FDCWD), p.Str(dir), launch.Int(mode))
	}
	mkdir("lower", 0o700)
	lower := n
	lower.ReadOnly = true
	t.attach(lower, launch.Int(unix.AT_FDCWD), "lower", 0)
	if n.Upper.Path != "" {
		mkdir("store", 0o700)
		t.attach(rootfs.Node{Path: n.UpperName(), Kind: rootfs.Bind}, launch.Int(unix.AT_FDCWD), "store", 0)
	} else {
		mkdir("upper", n.Mode) // whose mode is that of the overlay's root
		mkdir("work", 0o700)
		// No path leads there from outside, now or later.
		handOver(p, p.Do("open", "upper", unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), p.Str("upper"), launch.Int(unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC), launch.Int(0)), "upper", t.upperFD)
	}
	// Without redirects a directory cannot be renamed but by copying it, as between
	// file systems, and what is written is a tree that says by itself what it is.
	p.Do(mountStep+"overlay", n.Path, unix.SYS_MOUNT, p.Str("overlay"), p.Str("."), p.Str("overlay"), launch.Int(unix.MS_NOSUID|unix.MS_NODEV),
		p.Str("lowerdir=lower,upperdir="+upper+"upper,workdir="+upper+"work,userxattr"))
	p.Do("enter", "/", unix.SYS_CHDIR, p.Str("/"))
}
