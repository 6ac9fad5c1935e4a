package engine

import (
	"errors"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/seatbelt"
)

// SecretPaths are where people keep keys, passwords and what they typed, in a home
// directory and in the system, whether they exist or not. ViewHost hides them. The list
// cannot be complete.
func SecretPaths(home string) []string { return secretPaths(runtime.GOOS, home) }

func secretPaths(system, home string) []string {
	if system == "darwin" {
		return seatbelt.Secrets(home)
	}
	return rootfs.Secrets(home)
}

func checkView(s Spec) (errs []error) {
	switch s.FS.View {
	case "", ViewSystem, ViewHost:
	default:
		errs = append(errs, invalidField("fs.view", quoted(s.FS.View), "neither %s nor %s", ViewSystem, ViewHost))
	}
	if s.FS.View != "" && s.FS.Root != "" {
		errs = append(errs, invalidField("fs.view", string(s.FS.View), "with a root directory, which takes its place"))
	}
	for i, p := range s.FS.Hidden {
		errs = append(errs, hostPath(at("fs.hidden", i), p))
	}
	return errs
}

// hostView is the table of ViewHost.
func (pl *planner) hostView(o rootfs.Options) (rootfs.Table, error) {
	v := rootfs.HostView{
		Look: pl.lookup, Link: pl.host.LookupLink, List: pl.listDir,
		Later: box.KernelAtLeast(pl.host.Kernel, "6.6"),
	}
	if pl.host.Mounts != nil {
		mounts, err := pl.host.Mounts()
		if err != nil {
			return nil, err
		}
		v.Mounts = mounts
	}
	if pl.host.Become {
		v.May = pl.guestMay
	}
	v.Home, v.Mapped = pl.findHome()
	pl.home = v.Home
	if pl.home != "" {
		pl.home = filepath.Clean(pl.host.Home) // as this user calls it
	}
	o.Home = pl.home
	for _, home := range pl.homes() {
		v.Hidden = append(v.Hidden, secretPaths(pl.host.OS, home)...)
	}
	if pl.host.HeldDir != "" {
		v.Hidden = append(v.Hidden, pl.host.HeldDir) // what guests have made in other workspaces
	}
	v.Hidden = append(v.Hidden, pl.spec.FS.Hidden...)
	for _, m := range pl.spec.FS.Mounts {
		v.Bound = append(v.Bound, path.Clean(m.Target))
	}
	if pl.workspaceSource(); pl.workspace != nil {
		v.Bound = append(v.Bound, pl.workspace.Path)
	}
	base, err := rootfs.Host(pl.lookup, o)
	if err != nil {
		return nil, err
	}
	table, hidden, unseen, err := v.Tree(base, o)
	var hide *rootfs.HideError
	switch {
	case errors.As(err, &hide):
		return nil, invalidField("fs.hidden", hide.Path, "nothing in %s can be hidden", hide.In)
	case errors.Is(err, rootfs.ErrTooManyMounts):
		return nil, &UnsupportedError{Feature: "the view of this host", Err: err, Field: "fs.view"}
	case err != nil:
		return nil, err
	}
	pl.plan.hidden = hidden
	pl.refuseHidden()
	for _, m := range unseen {
		pl.note("%s is not shown: its file system is %s", m.Path, m.Type)
	}
	return table, nil
}

// workspaceSource finds the workspace. What is wrong with it is said later.
func (pl *planner) workspaceSource() {
	if ws := pl.spec.FS.Workspace; ws != "" && pl.workspace == nil {
		if src, err := pl.source("fs.workspace", ws); err == nil {
			pl.workspace = &src
		}
	}
}

// refuseHidden refuses a workspace, or a mount, that holds what is to be hidden: there it
// would be seen, and a mount on top would last only until a program of the host replaces it.
func (pl *planner) refuseHidden() {
	for i, m := range pl.spec.FS.Mounts {
		if m.Type == MountTmpfs {
			continue
		}
		if src, err := pl.lookup(m.Source); err == nil {
			if h := pl.hiddenIn(src.Path); h != "" {
				pl.fail(invalidField(at("fs.mounts", i)+".source", m.Source, "it contains %s, which is hidden: "+
					"mount the directories in it that are wanted", h))
			}
		}
	}
	if pl.workspace == nil {
		return
	}
	if h := pl.hiddenIn(pl.workspace.Path); h != "" {
		pl.fail(invalidField("fs.workspace", pl.spec.FS.Workspace, "it contains %s, which is hidden: "+
			"choose a directory that has no such files, or the system's view", h))
	}
}

// hiddenIn is a hidden path in a directory; "" is none. What is asked for by name need not
// exist, nor be hidden if it does not.
func (pl *planner) hiddenIn(dir string) string {
	for _, h := range append(slices.Clone(pl.spec.FS.Hidden), pl.plan.hidden...) {
		h = filepath.Clean(h)
		if h == dir || !rootfs.Within(dir, h) {
			continue
		}
		if _, err := pl.lookup(h); err == nil || slices.Contains(pl.spec.FS.Hidden, h) {
			return h
		}
	}
	return ""
}

func (pl *planner) listDir(dir string) ([]string, error) {
	if pl.host.ReadDir == nil {
		return nil, nil
	}
	return pl.host.ReadDir(dir)
}

// guestMay reports whether guests of root have permissions for a directory.
func (pl *planner) guestMay(dir rootfs.Source, permissions uint32) bool {
	id := pl.config.IDs
	switch {
	case dir.UID == id.HostUID:
		permissions <<= 6
	case dir.GID == id.HostGID:
		permissions <<= 3
	}
	return dir.Mode&permissions == permissions
}

// findHome is the real path of the home directory, if it is the guest's own, or root's
// that can be shown as its own (mapped).
func (pl *planner) findHome() (home string, mapped bool) {
	if pl.host.Home == "" || !filepath.IsAbs(pl.host.Home) {
		return "", false
	}
	src, err := pl.lookup(filepath.Clean(pl.host.Home))
	ofOthers := slices.ContainsFunc(append([]string{"/tmp", "/run", "/var/tmp", "/dev", "/proc", "/sys"}, systemDirs...),
		func(dir string) bool { return rootfs.Within(dir, src.Path) })
	if err != nil || !src.Dir || src.Path == "/" || ofOthers {
		return "", false
	}
	if src.UID == pl.config.IDs.HostUID {
		return src.Path, false
	}
	switch {
	case !pl.rootsOwn(src):
		err = errors.New("its owner is neither the sandbox's user nor root")
	case !box.KernelAtLeast(pl.host.Kernel, "5.19"):
		err = errors.New("overlays of idmapped mounts need Linux 5.19")
	default:
		err = pl.tryIDMap(src.Path)
	}
	if err != nil {
		pl.note("HOME is /tmp: the files of %s cannot be shown as the guest's (%v)", src.Path, err)
		return "", false
	}
	return src.Path, true
}

// homes are the home directories with secrets that guests could read: that of this
// process, and those of their user. HOME may name any directory.
func (pl *planner) homes() (homes []string) {
	add := func(home string) {
		if home = filepath.Clean(home); filepath.IsAbs(home) && home != "/" && !slices.Contains(homes, home) {
			homes = append(homes, home)
		}
	}
	if pl.host.Home != "" {
		add(pl.host.Home)
	}
	if pl.host.ReadFile != nil {
		guest, own := strconv.Itoa(pl.config.IDs.HostUID), strconv.Itoa(pl.host.UID)
		passwd, _ := pl.host.ReadFile("/etc/passwd") // its first part; the rest has homes in /home
		for line := range strings.Lines(string(passwd)) {
			f := strings.Split(strings.TrimSpace(line), ":")
			if len(f) > 5 && (f[2] == guest || f[2] == own) && f[2] != strconv.Itoa(nobody) {
				add(f[5])
			}
		}
	}
	names, _ := pl.listDir("/home") // without one there is nothing in it
	for _, name := range names {
		if src, err := pl.lookup("/home/" + name); err == nil && src.UID == pl.config.IDs.HostUID {
			add(src.Path)
		}
	}
	return homes
}

// linksInView reports whether a node is the workspace under a name that is a link in the
// host's view, which leads to it.
func (pl *planner) linksInView(t rootfs.Table, n rootfs.Node) bool {
	return pl.spec.FS.View == ViewHost && pl.hasNamespaces() && pl.workspace != nil &&
		n.Kind == rootfs.Bind && n.Path == filepath.Clean(pl.spec.FS.Workspace) && n.Path != pl.workspace.Path &&
		t.Holder(n.Path).Kind != rootfs.Tmpfs
}
