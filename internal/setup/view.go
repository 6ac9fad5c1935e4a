//go:build linux && (amd64 || arm64)

package setup

import (
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// stage is where the layers of views are put together. It is unmounted once all are
// mounted: they hold what they need of it, and no path leads there.
const stage = "/.stage"

// openStage mounts the tmpfs in which the layers of views are made. The root is
// writable still.
func (t *tree) openStage() {
	mkdir(t.p, stage, 0o700)
	mountFS(t.p, mountStep+"tmpfs", stage, "tmpfs", stage, unix.MS_NOSUID|unix.MS_NODEV, "mode=700")
	for _, dir := range []string{"/none", "/lower", "/write", "/static"} {
		mkdir(t.p, stage+dir, 0o755)
	}
}

func (t *tree) closeStage() {
	t.detach(stage)
	t.p.Do("remove", stage, unix.SYS_UNLINKAT, launch.Int(cwd), t.p.Str(stage), launch.Int(unix.AT_REMOVEDIR))
}

func (t *tree) detach(at string) {
	t.p.Do("unmount", at, unix.SYS_UMOUNT2, t.p.Str(at), launch.Int(unix.MNT_DETACH))
}

// view mounts a directory of the host by way of an overlay (Linux 5.11 in a user
// namespace). An inode of the overlay is not the host's: connect(2) finds no listener at
// a socket, and a named pipe has nobody at its other end. Whiteouts, which any user may
// make from Linux 5.8 on, stand for what is hidden, in a layer of their own: neither a
// guest that makes and removes such a name nor the host can uncover what is below.
func (t *tree) view(n rootfs.Node) {
	p := t.p
	lower, flags := n, unix.MS_NOSUID|unix.MS_NODEV
	lower.ReadOnly = true
	t.attach(lower, launch.Int(cwd), stage+"/lower", 0)
	layers := "lowerdir=" + stage + "/lower:" + stage + "/none" // without an upper there must be two
	if len(n.Hidden) > 0 {
		layers = "lowerdir=" + t.whiteouts(n) + ":" + stage + "/lower"
	}
	const write = stage + "/write"
	if n.ReadOnly {
		flags |= unix.MS_RDONLY
	} else {
		mountFS(p, mountStep+"tmpfs", n.Path, "tmpfs", write, unix.MS_NOSUID|unix.MS_NODEV, "mode=700"+limits(n))
		mkdir(p, write+"/upper", n.Mode)
		mkdir(p, write+"/work", 0o700)
		layers += ",upperdir=" + write + "/upper,workdir=" + write + "/work"
	}
	t.mount(n, "overlay", flags, layers+",userxattr")
	chdir(p, "enter", "/", "/")
	t.detach(stage + "/lower")
	if !n.ReadOnly {
		t.detach(write)
	}
}

// whiteouts makes the layer that hides names, and returns its path.
func (t *tree) whiteouts(n rootfs.Node) string {
	t.masks++
	layer := stage + "/hide" + strconv.Itoa(t.masks)
	made := map[string]bool{layer: true}
	mkdir(t.p, layer, n.Source.Mode&0o777|0o700) // what the directory itself has in the view
	var parents func(dir string)
	parents = func(dir string) {
		if made[dir] {
			return
		}
		made[dir] = true
		parents(path.Dir(dir))
		mkdir(t.p, dir, 0o755)
	}
	for _, name := range n.Hidden {
		at := path.Join(layer, name)
		parents(path.Dir(at))
		t.p.Do("hide", path.Join(n.Path, name), unix.SYS_MKNODAT, launch.Int(cwd), t.p.Str(at),
			launch.Int(unix.S_IFCHR), launch.Int(0))
	}
	return layer
}

// static mounts a tmpfs. In a view it covers a directory that this process may not
// enter, so it is moved there.
func (t *tree) static(n rootfs.Node, data string) {
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if t.table.Holder(n.Path).Kind != rootfs.View {
		t.mount(n, "tmpfs", flags, data)
		return
	}
	const made = stage + "/static"
	mountFS(t.p, mountStep+"tmpfs", n.Path, "tmpfs", made, flags, data)
	at := t.openMountPoint(n)
	t.p.Do("mount", n.Path, unix.SYS_MOVE_MOUNT, launch.Int(cwd), t.p.Str(made), at, t.p.Str(""),
		launch.Int(unix.MOVE_MOUNT_T_EMPTY_PATH))
	t.close(at)
}
