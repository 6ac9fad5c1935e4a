package engine

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/holdback"
	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// decideFiles makes the mount table.
func (pl *planner) decideFiles() {
	table, err := pl.root()
	if err != nil {
		pl.fail(hostError("fs.root", pl.spec.FS.Root, err))
		return
	}
	binds, ok := pl.binds()
	if !ok {
		return
	}
	protected, ok := pl.protect()
	if !ok {
		return
	}
	binds = append(binds, protected...)
	// As docker does: what stands deeper comes later, in whatever order it was given.
	slices.SortStableFunc(binds, func(a, b rootfs.Node) int { return rootfs.Depth(a.Path) - rootfs.Depth(b.Path) })
	for _, n := range binds {
		if pl.linksInView(table, n) {
			continue
		}
		table = table.Add(n)
	}
	table = pl.linkWorkspace(table)
	switch {
	case pl.spec.FS.Workspace != "":
		pl.plan.Dir = filepath.Clean(pl.spec.FS.Workspace)
	case table.Has(rootfs.Workspace):
		pl.plan.Dir = rootfs.Workspace
	default:
		pl.plan.Dir = "/tmp"
	}
	table.Sort()
	pl.config.Table = table
}

// root is the table that everything else is mounted on.
func (pl *planner) root() (rootfs.Table, error) {
	o := rootfs.Options{
		UID: pl.config.IDs.UID, GID: pl.config.IDs.GID, Hostname: pl.config.Hostname, Proc: pl.host.Proc,
		List: pl.host.ReadDir, Git: pl.gitUser(),
		TmpBytes: tmpfsLimit(pl.limits.Tmp), TmpInodes: tmpfsLimit(pl.limits.TmpFiles),
	}
	if pl.hasNamespaces() { // otherwise files are seen where they are
		o.Read = pl.host.ReadFile
		o.Limits = pl.shownLimits()
	}
	if pl.spec.FS.Hidden != nil && pl.spec.FS.View != ViewHost && pl.host.OS != "darwin" {
		pl.fail(&UnsupportedError{Feature: "hiding paths outside the view of the host", Field: "fs.hidden",
			Remedy: "the system's view shows no files of users: they need the view host"})
	}
	switch root := pl.spec.FS.Root; {
	case pl.usesProcessGroups():
		return rootfs.Table{{Path: "/", Kind: rootfs.Dir}}, nil // all else the host has
	case root == "" && pl.spec.FS.View == ViewHost && pl.hasNamespaces():
		return pl.hostView(o)
	case root == "":
		return rootfs.Host(pl.lookup, o)
	default:
		if _, err := pl.source("fs.root", root); err != nil {
			return nil, err
		}
		return rootfs.Directory(pl.lookup, root, pl.spec.FS.Overlay, o)
	}
}

// binds are the mounts that the Spec asks for, the workspace among them.
func (pl *planner) binds() (nodes []rootfs.Node, ok bool) {
	failed := len(pl.errs)
	for i, m := range pl.spec.FS.Mounts {
		n, err := pl.mount(at("fs.mounts", i), m)
		pl.fail(err)
		nodes = append(nodes, n)
	}
	if ws := pl.spec.FS.Workspace; ws != "" {
		at, err := pl.bindWorkspace(ws)
		pl.fail(err)
		nodes = append(nodes, at...)
	}
	seen := make(map[string]int)
	for i, n := range nodes {
		first, twice := seen[n.Path]
		if twice && n.Path != "" {
			if i >= len(pl.spec.FS.Mounts) { // the workspace
				i = first
			}
			pl.fail(invalidField(at("fs.mounts", i), n.Path, "listed twice"))
		}
		seen[n.Path] = i
	}
	return nodes, len(pl.errs) == failed
}

func (pl *planner) mount(field string, m Mount) (rootfs.Node, error) {
	place := path.Clean(m.Target)
	if m.Type == MountTmpfs {
		size, mode := cmp.Or(m.Size, pl.limits.Tmp), cmp.Or(m.Mode, 0o1777)
		return rootfs.Node{Path: place, Kind: rootfs.Tmpfs, Mode: mode, NoExec: m.NoExec, Size: tmpfsLimit(size),
			Inodes: tmpfsLimit(pl.limits.TmpFiles)}, nil
	}
	src, err := pl.source(field+".source", m.Source)
	n := rootfs.Node{Path: place, Kind: rootfs.Bind, Source: src, ReadOnly: m.ReadOnly}
	held := pl.host.HeldDir
	// The whole home directory is the caller's choice.
	isStore := rootfs.Within(held, src.Path) || rootfs.Within(src.Path, held) && !rootfs.Within(src.Path, pl.host.Home)
	if err == nil && !m.ReadOnly && held != "" && isStore {
		return n, invalidField(field+".source", m.Source, "what was held back from guests is kept in it, in %s: "+
			"mount it read-only, or another directory", held)
	}
	if err == nil && !m.ReadOnly && pl.rootsOwn(src) && !ofSystem(src.Path) {
		if err := pl.tryIDMap(src.Path); err != nil {
			pl.note("%s belongs to root, and cannot be written to: its files cannot be shown as the guest's (%v)", src.Path, err)
			return n, nil
		}
		n.Mapped, pl.config.NoSetID = true, true
	}
	return n, err
}

// bindWorkspace binds the directory at the path it was asked for and, when that
// goes through a symbolic link, at the path it really has.
func (pl *planner) bindWorkspace(ws string) (nodes []rootfs.Node, err error) {
	if pl.workspace == nil {
		src, err := pl.source("fs.workspace", ws)
		if err != nil {
			return nil, err
		}
		pl.workspace = &src
	}
	src := *pl.workspace
	if !src.Dir {
		return nil, invalidField("fs.workspace", ws, "not a directory")
	}
	paths := []string{filepath.Clean(ws)}
	if src.Path != paths[0] {
		paths = append(paths, src.Path)
	}
	for _, at := range paths {
		if err := target("fs.workspace", at); err != nil {
			return nil, err
		}
		for _, dir := range systemDirs {
			if rootfs.Within(dir, at) {
				return nil, invalidField("fs.workspace", ws, "%s is a system directory", dir)
			}
		}
		nodes = append(nodes, rootfs.Node{Path: at, Kind: rootfs.Bind, Source: src})
	}
	if pl.overlaid() {
		nodes = []rootfs.Node{pl.overlayNode(src)}
	}
	if pl.host.Become && !pl.hasNamespaces() && src.UID == 0 && src.Mode&0o002 == 0 {
		return nil, invalidField("fs.workspace", ws, "it belongs to root, and without namespaces guests could not "+
			"write to it: chown it to an ordinary user")
	}
	if pl.rootsOwn(src) {
		if err := pl.tryIDMap(src.Path); err != nil {
			return nil, invalidField("fs.workspace", ws, "it belongs to root, and its file system cannot show its files as "+
				"the guest's (%v): use a directory of another user, or run as one", err)
		}
		for i := range nodes {
			nodes[i].Mapped = true
		}
		pl.config.NoSetID = true
	}
	return nodes, nil
}

// systemDirs are never a workspace.
var systemDirs = []string{"/usr", "/etc", "/bin", "/sbin", "/lib"}

// ofSystem reports whether a directory is a part of the system, or holds many users'
// or services' files: there root's files stay root's, whatever is asked for.
func ofSystem(dir string) bool {
	system := append([]string{"/boot", "/dev", "/proc", "/sys", "/run"}, systemDirs...)
	return rootfs.Depth(dir) < 2 || slices.ContainsFunc(system, func(s string) bool { return rootfs.Within(s, dir) })
}

// protect protects the workspace.
func (pl *planner) protect() (nodes []rootfs.Node, ok bool) {
	pl.plan.workspace = pl.workspace
	if pl.workspace == nil {
		return nil, true
	}
	o := protect.Options{
		Workspace: *pl.workspace, At: filepath.Clean(pl.spec.FS.Workspace),
		Mountable: func(at string) error { return target("fs.workspace", at) },
		Lookup:    pl.lookup, ReadFile: pl.host.ReadFile, ReadDir: pl.host.ReadDir,
		Strict: pl.spec.FS.Protect == ProtectStrict || pl.usesProcessGroups(), // where nothing would be reported
		Watch:  pl.plan.Level == LevelNamespaces && !pl.overlaid() && pl.spec.FS.Protect != ProtectStrict,
	}
	if !pl.usesProcessGroups() {
		o.LookupLink = pl.host.LookupLink
	}
	if pl.spec.FS.Protect == ProtectOff {
		o.AllowWrite = []string{"."}
	}
	for _, m := range pl.spec.FS.Mounts {
		o.Mounts = append(o.Mounts, path.Clean(m.Target))
	}
	for _, a := range pl.spec.FS.AllowWrite {
		o.AllowWrite = append(o.AllowWrite, protect.Relative(pl.spec.FS.Workspace, a))
	}
	if _, err := pl.lookup(path.Join(pl.workspace.Path, ".git")); errors.Is(err, fs.ErrPermission) {
		// Once, and not for each of the protected names in it.
		pl.fail(invalidField("fs.workspace", o.At, "permission denied"))
		return nil, false
	}
	d, errs := protect.Decide(o)
	for _, err := range errs {
		pl.fail(protectError(err))
	}
	pl.plan.notes = append(pl.plan.notes, d.Notes...)
	if !pl.overlaid() {
		for _, dir := range d.Dirs {
			if len(dir.Placeholders) > 0 {
				pl.config.Placeholders = append(pl.config.Placeholders, dir)
			}
			if len(dir.Watched) > 0 {
				pl.config.Watched = append(pl.config.Watched, dir)
			}
		}
		if len(pl.config.Watched) > 0 {
			var err error
			pl.config.Workspace = pl.workspace.Path
			pl.config.Held, err = holdback.Dir(pl.host.HeldDir, pl.workspace.Path)
			pl.fail(err)
		}
		return pl.mapped(d.Nodes), len(errs) == 0
	}
	pl.config.Overlay = &box.Overlay{
		Workspace: *pl.workspace, OnDisk: pl.spec.FS.Upper != "", Slack: int64(pl.limits.Workspace),
	}
	pl.config.Overlay.Rules, nodes = d.Rules()
	return pl.mapped(nodes), len(errs) == 0
}

// mapped shows root's files in mounts as the workspace does.
func (pl *planner) mapped(nodes []rootfs.Node) []rootfs.Node {
	for i := range nodes {
		nodes[i].Mapped = pl.rootsOwn(*pl.workspace)
	}
	return nodes
}
