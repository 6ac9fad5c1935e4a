//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// rootOverlay puts an overlay, a tmpfs over a host directory, at the path at and
// makes it the current directory. Everything is named relative to the tmpfs, so no
// path of the host needs quoting in the mount options.
func (t *tree) rootOverlay(n rootfs.Node, at string) {
	p := t.p
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	mountFS(p, mountStep+"tmpfs", n.Path, "tmpfs", at, flags, "mode=755"+limits(n))
	chdir(p, "enter", n.Path, at)
	for _, dir := range []string{"lower", "upper", "work", "root"} {
		mkdir(p, dir, 0o755)
	}
	n.ReadOnly = true
	t.attach(n, launch.Int(cwd), "lower", 0)
	const dirs = "lowerdir=lower,upperdir=upper,workdir=work,userxattr"
	mountFS(p, mountStep+"overlay", n.Path, "overlay", "root", flags, dirs)
	chdir(p, "enter", n.Path, "root")
}

// overlay mounts an overlay on a directory that is not the root (Linux 5.11 for
// user namespaces). Its parts lie in a tmpfs on the same mount point: the overlay
// covers it and a guest cannot unmount the overlay, so the written files can only
// be reached through the overlay.
//
// Everything is named relative to that tmpfs, so no path of the host needs quoting
// in the mount options, and none is seen in the list of mounts.
func (t *tree) overlay(n rootfs.Node) {
	p := t.p
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	stage, upper := "mode=700"+limits(n), ""
	if n.Upper.Path != "" {
		stage, upper = "mode=700,size=64k,nr_inodes=8", "store/"
	}
	t.mount(n, "tmpfs", flags, stage)
	at := t.openMountPoint(n) // again: now this opens the tmpfs
	p.Do("enter", n.Path, unix.SYS_FCHDIR, at)
	t.close(at)
	mkdir(p, "lower", 0o700)
	lower := n
	lower.ReadOnly = true
	t.attach(lower, launch.Int(cwd), "lower", 0)
	if n.Upper.Path != "" {
		mkdir(p, "store", 0o700)
		t.attach(rootfs.Node{Path: n.UpperName(), Kind: rootfs.Bind}, launch.Int(cwd), "store", 0)
	} else {
		mkdir(p, "upper", n.Mode) // the overlay's root takes this mode
		mkdir(p, "work", 0o700)
		// No path leads there from outside, now or later.
		dir := openAt(p, "open", "upper", cwd, "upper", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		handOver(p, dir, "upper", t.upperFD)
	}
	// No redirects: a directory can then only be renamed by copying, as between file
	// systems, and the upper directory is a complete record of what was written.
	dirs := "lowerdir=lower,upperdir=" + upper + "upper,workdir=" + upper + "work,userxattr"
	mountFS(p, mountStep+"overlay", n.Path, "overlay", ".", flags, dirs)
	chdir(p, "enter", "/", "/")
}
