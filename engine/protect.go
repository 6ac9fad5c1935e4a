package engine

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// A ghost is a guarded name that does not exist on the host: for the sandbox's
// life it is made there, empty, so that something can be mounted on it.
type ghost struct {
	guardedName
	at []string // paths inside
}

// ghostDir is a directory of the host with the ghosts in it.
type ghostDir struct {
	dir    rootfs.Source
	at     []string // the directory's paths inside
	ghosts []ghost
	names  []string // all that may be ghosts here, of other sandboxes too
}

// ghostLock is a directory that stands beside ghosts as long as any sandbox
// needs them. Sandboxes hold a shared lock on it; who gets an exclusive one is
// the last, and removes them. Inside, an empty tmpfs lies over it, so that no
// guest can hold a lock.
const ghostLock = ".tegmen"

// isGhost tells a ghost from what people make: it has the sticky bit and is
// writable to nobody. Both are set by the very call that makes it.
func isGhost(s rootfs.Source) bool { return s.Mode&0o1222 == 0o1000 }

// warden decides what is mounted in a workspace so that what is guarded stays
// as it is.
//
// What exists is bound read-only onto itself. A parent is bound onto itself,
// too: as a mount point it cannot be renamed, and what is beneath it cannot be
// shaken off with it.
type warden struct {
	host      Host
	fs        FS
	ghostDirs []*ghostDir
	nodes     []rootfs.Node
	notes     []string
	seen      map[string]bool // nodes by path inside, and what has been reported
}

// protect guards the workspace.
func (p *Plan) protect(h Host) ([]rootfs.Node, error) {
	if p.workspace == nil {
		return nil, nil
	}
	w := &warden{host: h, fs: p.Spec.FS, seen: make(map[string]bool)}
	ws := &ghostDir{dir: *p.workspace, at: []string{filepath.Clean(p.Spec.FS.Workspace)}}
	if ws.dir.Path != ws.at[0] {
		ws.at = append(ws.at, ws.dir.Path)
	}
	w.ghostDirs = append(w.ghostDirs, ws)
	errs := []error{w.git(ws)}
	for _, g := range guarded {
		missing := g.missing
		if missing == together && !w.any(ws, g.names) {
			missing = mayBeMade
		}
		for _, name := range g.names {
			errs = append(errs, w.guard(ws, guardedName{name: name, missing: missing}, name))
		}
	}
	if p.overlaid() {
		return p.protectOnCommit(w, ws), errors.Join(errs...)
	}
	for _, h := range w.ghostDirs {
		if len(h.ghosts) > 0 {
			p.ghostDirs = append(p.ghostDirs, *h)
		}
	}
	p.guards, p.notes = len(w.seen) > 0, w.notes
	return w.nodes, errors.Join(errs...)
}

// guard protects a name in a directory; as is what it is called in AllowWrite.
func (w *warden) guard(d *ghostDir, g guardedName, as string) error {
	if d.names = append(d.names, g.name); w.opened(as) {
		return nil
	}
	parts := strings.Split(g.name, "/")
	for i := range parts {
		name, last := path.Join(parts[:i+1]...), i == len(parts)-1
		src, err := w.find(path.Join(d.dir.Path, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if g.missing == mayBeMade {
				return nil
			}
			return w.ghost(d, guardedName{name: name, file: last && g.file, data: g.data, closed: last && g.closed}, strings.TrimSuffix(as, strings.TrimPrefix(g.name, name)))
		case err != nil && w.seen[err.Error()]:
			return nil // of a parent, and reported
		case err != nil:
			w.seen[err.Error()] = true
			return err
		case last || !src.Dir:
			w.bind(d, name, src, true)
			return nil
		}
		w.bind(d, name, src, false)
	}
	return nil
}

// any tells whether one of the names exists.
func (w *warden) any(d *ghostDir, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := w.find(path.Join(d.dir.Path, name))
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// find looks for what is neither a link nor a ghost; a ghost is missing. A link
// could be replaced where it stands, and what it leads to be written to.
func (w *warden) find(at string) (rootfs.Source, error) {
	src, err := w.host.Lookup(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return src, fs.ErrNotExist
	case err != nil:
		return src, hostError("protect", at, err)
	case src.Path != at:
		return src, invalid("protect %s: it is a symbolic link, which cannot be kept from being replaced: make it a file or a directory, or let it be changed (allow write %s)", at, at)
	case isGhost(src):
		return src, fs.ErrNotExist
	}
	return src, nil
}

// bind mounts a part of d onto itself, unless it has been.
func (w *warden) bind(d *ghostDir, name string, src rootfs.Source, readOnly bool) {
	for _, at := range w.places(d, name) {
		if !w.seen[at] {
			w.seen[at] = true
			w.nodes = append(w.nodes, rootfs.Node{Path: at, Kind: rootfs.Bind, Source: src, ReadOnly: readOnly})
		}
	}
}

func (w *warden) ghost(d *ghostDir, g guardedName, as string) error {
	for _, a := range w.fs.AllowWrite {
		if a = w.fs.relative(a); a != as && rootfs.Within(as, a) {
			return invalid("allow write %s: %s does not exist yet, and is protected as a whole: make it, or allow %s", a, as, as)
		}
	}
	at := slices.DeleteFunc(w.places(d, g.name), func(p string) bool { return w.seen[p] })
	for _, p := range at {
		w.seen[p] = true
	}
	if len(at) > 0 {
		d.ghosts = append(d.ghosts, ghost{g, at})
	}
	return nil
}

// places are a name's paths inside, but those where the Spec mounts something
// there or above: what was asked for wins.
func (w *warden) places(d *ghostDir, name string) (paths []string) {
	for _, dir := range d.at {
		at := path.Join(dir, name)
		if !slices.ContainsFunc(w.fs.Mounts, func(m Mount) bool {
			target := path.Clean(m.Target)
			return rootfs.Within(dir, target) && rootfs.Within(target, at)
		}) {
			paths = append(paths, at)
		}
	}
	return paths
}

// opened tells whether the Spec lets a name be written to.
func (w *warden) opened(name string) bool {
	return slices.ContainsFunc(w.fs.AllowWrite, func(a string) bool {
		a = w.fs.relative(a)
		return a == "." || rootfs.Within(a, name)
	})
}

// relative is an entry of AllowWrite as a path in the workspace, or "" when it
// is not in there.
func (f FS) relative(a string) string {
	if !filepath.IsAbs(a) {
		a = filepath.Join(f.Workspace, a)
	}
	rel, err := filepath.Rel(f.Workspace, a)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return rel
}

// checkAllowWrite refuses what opens nothing: it would be a mistake.
func (f FS) checkAllowWrite() error {
	if len(f.AllowWrite) > 0 && f.Workspace == "" {
		return invalid("allow write without a workspace: only there is anything protected")
	}
	names := guardedNames()
	var errs []error
	for _, a := range f.AllowWrite {
		rel := f.relative(a)
		beneath := slices.IndexFunc(names, func(n string) bool { return rel != n && rootfs.Within(n, rel) })
		switch {
		case a == "":
			errs = append(errs, invalid("allow write: an empty path; \".\" is the whole workspace"))
		case rel == "":
			errs = append(errs, invalid("allow write %s: not in the workspace %s", a, f.Workspace))
		case rel == "." || slices.ContainsFunc(names, func(n string) bool { return rootfs.Within(rel, n) }):
		case beneath >= 0:
			errs = append(errs, invalid("allow write %s: %s is protected as a whole: allow that", a, names[beneath]))
		default:
			errs = append(errs, invalid("allow write %s: not protected; what is: %s", a, strings.Join(names, " ")))
		}
	}
	return errors.Join(errs...)
}

// guardedNames are the names that AllowWrite may hold, or parents of.
func guardedNames() (names []string) {
	for _, g := range guardedGit {
		names = append(names, ".git/"+g.name)
	}
	for _, g := range guarded {
		names = append(names, g.names...)
	}
	return append(append(names, bareParts...), bareElsewhere)
}

// withGhosts is the table with the ghosts in it that source has an answer for.
func (p *Plan) withGhosts(source func(d *ghostDir, g ghost) (rootfs.Source, bool)) rootfs.Table {
	t := slices.Clone(p.table)
	for i := range p.ghostDirs {
		d := &p.ghostDirs[i]
		some := false
		for _, g := range d.ghosts {
			src, ok := source(d, g)
			for _, at := range g.at {
				if ok {
					t = t.Add(rootfs.Node{Path: at, Kind: rootfs.Bind, Source: src, ReadOnly: true})
				}
			}
			some = some || ok
		}
		for _, at := range d.at {
			if some {
				t = t.Add(rootfs.Node{Path: path.Join(at, ghostLock), Kind: rootfs.Static, Mode: 0o555})
			}
		}
	}
	t.Sort()
	return t
}
