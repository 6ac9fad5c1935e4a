package protect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// Options are what a decision depends on.
type Options struct {
	Workspace  rootfs.Source // the workspace on the host
	At         string        // the path by which the workspace was asked for, absolute and clean
	Mounts     []string      // where else something is mounted, absolute and clean: what was asked for wins
	AllowWrite []string      // paths, relative to the workspace, that are not protected
	Watch      bool          // what is missing is watched for; otherwise a placeholder stands for it
	Strict     bool          // what is missing cannot be made, even if it would only be reported
	// Mountable returns an error if nothing may be mounted at a path.
	Mountable func(path string) error
	Lookup    rootfs.Lookup                     // resolves a path of the host
	ReadFile  func(path string) ([]byte, error) // nil reads nothing
	// LookupLink finds a symbolic link itself; nil where none can be mounted upon, so
	// that they are refused.
	LookupLink func(path string) (rootfs.Source, error)
	ReadDir    func(path string) ([]string, error) // lists the names in a directory; nil lists nothing
}

// readSmall is how much of a file Options.ReadFile reads.
const readSmall = 4096

// Decision is how a workspace is protected.
type Decision struct {
	Nodes []rootfs.Node // to be mounted: existing paths, read-only, and their parents
	Dirs  []Dir         // that need placeholders, or are watched
	Notes []string      // what people should know

	at []string // of the workspace
}

// A Placeholder stands for a protected path that does not exist on the host.
type Placeholder struct {
	Name   string   // relative to its directory
	At     []string // absolute paths inside
	File   bool     // a file; otherwise an empty directory
	Data   string   // of a file
	Closed bool     // a directory that nobody may search
}

// Dir is a directory of the host in which protected paths do not exist.
type Dir struct {
	Source       rootfs.Source // the directory, on the host
	At           []string      // its paths inside
	Placeholders []Placeholder // what may have to be made in it
	Names        []string      // all that may be placeholders here, even of other sandboxes
	Watched      []Watched     // what guests may make in it
}

// LockName is a directory that stands beside placeholders as long as any sandbox
// needs them. Sandboxes hold a shared lock on it; whoever gets an exclusive one is
// the last, and removes them. Inside, an empty tmpfs lies over it, so that no
// guest can hold a lock.
const LockName = ".tegmen"

// isPlaceholder tells a placeholder from what people make: it has the sticky bit
// and is writable to nobody. The call that makes it sets both.
func isPlaceholder(s rootfs.Source) bool { return s.Mode&0o1222 == 0o1000 }

// planner decides what is mounted so that protected paths stay as they are.
//
// What exists is bound read-only onto itself. A parent is bound onto itself as
// well: a mount point cannot be renamed, so what is beneath it cannot be shaken
// off with it.
type planner struct {
	Options
	dirs  []*Dir
	nodes []rootfs.Node
	notes []string
	seen  map[string]bool // nodes by path inside, and errors that have been reported
}

// protect protects a name in a directory; as is its name in AllowWrite.
func (w *planner) protect(d *Dir, g entry, as string) error {
	if d.Names = append(d.Names, g.name); w.allowed(as) {
		return nil
	}
	parts := strings.Split(g.name, "/")
	var parents []func()
	for i := range parts {
		part, last := path.Join(parts[:i+1]...), i == len(parts)-1
		if to, ok := w.link(d, part); ok {
			call(parents)
			return w.behind(d, g, path.Join(to, path.Join(parts[i+1:]...)), as)
		}
		src, err := w.find(path.Join(d.Source.Path, part))
		if left := maxHollow; err == nil && last && !g.inGit && src.Dir && w.hollow(src.Path, &left) {
			err = fs.ErrNotExist
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p := Placeholder{Name: part, File: last && g.file, Data: g.data, Closed: last && g.closed}
			g.as = as
			return w.missing(d, g, p, strings.TrimSuffix(as, strings.TrimPrefix(g.name, part)), parents)
		case err != nil && w.seen[err.Error()]:
			return nil // of a parent, and reported
		case err != nil:
			w.seen[err.Error()] = true
			return err
		}
		readOnly := last || !src.Dir
		parents = append(parents, func() { w.bind(d, part, src, readOnly) })
		if readOnly {
			break
		}
	}
	call(parents)
	return nil
}

// hollow reports whether there is no file in a watched directory: it may be another
// guest's, who could remove it, and with it a mount that is on it.
func (w *planner) hollow(dir string, left *int) bool {
	if !w.Watch || w.ReadDir == nil {
		return false
	}
	names, err := w.ReadDir(dir)
	for _, name := range names {
		at := path.Join(dir, name)
		src, ferr := w.Lookup(at)
		if *left--; *left < 0 || ferr != nil || src.Path != at || !src.Dir || !w.hollow(at, left) {
			return false
		}
	}
	return err == nil
}

// maxHollow is how many directories are looked into for files.
const maxHollow = 64

// link keeps a symbolic link in the workspace from being replaced, and returns where it
// leads: an absolute path of the host. Only a mount upon the link itself holds it.
func (w *planner) link(d *Dir, name string) (to string, ok bool) {
	at := path.Join(d.Source.Path, name)
	if w.LookupLink == nil {
		return "", false
	}
	src, err := w.LookupLink(at)
	if err != nil || src.Link == "" {
		return "", false
	}
	w.bind(d, name, src, true)
	if real, err := w.Lookup(at); err == nil {
		return real.Path, true
	}
	if path.IsAbs(src.Link) {
		return path.Clean(src.Link), true
	}
	return path.Join(path.Dir(at), src.Link), true
}

// behind protects what a link leads to, as far as guests can write to it.
func (w *planner) behind(d *Dir, g entry, to, as string) error {
	rel, err := filepath.Rel(d.Source.Path, to)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return nil // it leads out of the workspace
	}
	if w.seen["behind "+rel] {
		return nil // links in a circle
	}
	w.seen["behind "+rel] = true
	g.name = rel
	return w.protect(d, g, as)
}

func call(list []func()) {
	for _, f := range list {
		f()
	}
}

// missing decides what becomes of a name that does not exist. What git obeys at once is
// not watched in its directory: there a placeholder is in nobody's way, and keeps the
// name from being made at all.
func (w *planner) missing(d *Dir, g entry, p Placeholder, as string, pinParents []func()) error {
	watch := w.Watch && !g.inGit
	switch {
	case g.missing == harmless || g.missing == told && !w.Strict:
		if watch {
			d.Watched = append(d.Watched, Watched{Name: g.name, As: g.as, Why: g.why, What: Tell})
		}
		return nil
	case watch:
		call(pinParents)
		d.Watched = append(d.Watched, Watched{Name: g.name, As: g.as, Why: g.why, What: cmp.Or(g.what, Hold)})
		return nil
	}
	call(pinParents)
	return w.placeholder(d, p, as)
}

// any reports whether one of the names exists.
func (w *planner) any(d *Dir, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := w.find(path.Join(d.Source.Path, name))
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// find looks for what is neither a link nor a placeholder; a placeholder counts as
// missing. A link could be replaced where it stands, and its target be written to.
func (w *planner) find(at string) (rootfs.Source, error) {
	src, err := w.Lookup(at)
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return src, fs.ErrNotExist
	case errors.As(err, &pe):
		return src, fmt.Errorf("protect %s: %w", at, pe.Err)
	case err != nil:
		return src, err
	case src.Path != at:
		return src, fmt.Errorf("protect %s: it is a symbolic link, which cannot be protected: "+
			"replace it with a file or a directory, or allow changes (allow write %s)", at, at)
	case isPlaceholder(src):
		return src, fs.ErrNotExist
	}
	return src, nil
}

// bind mounts a part of d onto itself, unless that has been done.
func (w *planner) bind(d *Dir, name string, src rootfs.Source, readOnly bool) {
	for _, at := range w.places(d, name) {
		if !w.seen[at] {
			w.seen[at] = true
			w.nodes = append(w.nodes, rootfs.Node{Path: at, Kind: rootfs.Bind, Source: src, ReadOnly: readOnly})
		}
	}
}

// opened refuses that a part of what is missing may be written to.
func (w *planner) opened(missing string) error {
	for i, a := range w.AllowWrite {
		if a != missing && rootfs.Within(missing, a) {
			return &EntryError{i, a, fmt.Sprintf(
				"%s does not exist yet, and is protected as a whole: make it, or allow %s", missing, missing)}
		}
	}
	return nil
}

func (w *planner) placeholder(d *Dir, p Placeholder, as string) error {
	if err := w.opened(as); err != nil {
		return err
	}
	p.At = slices.DeleteFunc(w.places(d, p.Name), func(at string) bool { return w.seen[at] })
	for _, at := range p.At {
		w.seen[at] = true
	}
	if len(p.At) > 0 {
		d.Placeholders = append(d.Placeholders, p)
	}
	return nil
}

// places are a name's paths inside, except where something else is mounted there
// or above.
func (w *planner) places(d *Dir, name string) (paths []string) {
	for _, dir := range d.At {
		at := path.Join(dir, name)
		if !slices.ContainsFunc(w.Mounts, func(m string) bool { return rootfs.Within(dir, m) && rootfs.Within(m, at) }) {
			paths = append(paths, at)
		}
	}
	return paths
}

// allowed reports whether a name may be written to.
func (w *planner) allowed(name string) bool {
	return slices.ContainsFunc(w.AllowWrite, func(a string) bool { return a == "." || rootfs.Within(a, name) })
}

// Relative is an entry of a list of paths to be written to, as a path in the
// workspace, or "" if it is not in there.
func Relative(workspace, entry string) string {
	if !filepath.IsAbs(entry) {
		entry = filepath.Join(workspace, entry)
	}
	rel, err := filepath.Rel(workspace, entry)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return rel
}

// EntryError is an entry of a list of paths to be written to that cannot be there.
type EntryError struct {
	Index   int    // in the list
	Entry   string // may be empty
	Problem string // why it opens nothing
}

func (e *EntryError) Error() string {
	return strings.TrimRight("allow write "+e.Entry, " ") + ": " + e.Problem
}

// CheckAllowWrite refuses entries that open nothing: they would be a mistake.
func CheckAllowWrite(workspace string, entries []string) (errs []error) {
	names := allNames()
	for i, a := range entries {
		refuse := func(format string, args ...any) {
			errs = append(errs, &EntryError{i, a, fmt.Sprintf(format, args...)})
		}
		rel := Relative(workspace, a)
		beneath := slices.IndexFunc(names, func(n string) bool { return rel != n && rootfs.Within(n, rel) })
		switch {
		case a == "":
			refuse(`an empty path; "." is the whole workspace`)
		case rel == "":
			refuse("not in the workspace %s", workspace)
		case rel == "." || slices.ContainsFunc(names, func(n string) bool { return rootfs.Within(rel, n) }):
		case beneath >= 0:
			refuse("%s is protected as a whole: allow that", names[beneath])
		default:
			refuse("not protected; protected are: %s", strings.Join(names, " "))
		}
	}
	return errs
}
