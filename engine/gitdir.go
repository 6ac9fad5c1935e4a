package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// git guards what git executes for the workspace, wherever that is.
//
//	.git is missing      a ghost: a guest that made it could put hooks there
//	a directory          what is guarded in it
//	a file, leading to   (gitrepository-layout(5))
//	  the workspace      the same, there
//	  a linked worktree  the main repository's, which is mounted for commits
//	  elsewhere          nothing more, and the Plan says so
func (w *warden) git(ws *ghostDir) error {
	if err := w.bareRepository(ws); err != nil {
		return err
	}
	const name = ".git"
	all := w.opened(name)
	src, err := w.find(path.Join(ws.dir.Path, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.guard(ws, guardedName{name: name}, name)
	case all && (err != nil || src.Dir):
		return nil
	case err != nil:
		return err
	case src.Dir:
		return w.gitDir(ws, name)
	}
	if !all {
		w.bind(ws, name, src, true)
	}
	return w.gitFile(ws, src)
}

// bareRepository keeps the workspace from becoming a repository itself: git takes
// a directory for one that has these in it, where there is no valid .git, and a
// guest can break that. To lack one of them is enough. Where it has all of them it
// is one, and guarded as such.
func (w *warden) bareRepository(ws *ghostDir) error {
	// Unless that says that two of them are elsewhere.
	if err := w.guard(ws, guardedName{name: bareElsewhere}, bareElsewhere); err != nil {
		return err
	}
	for _, name := range bareParts {
		if w.opened(name) {
			continue
		}
		_, err := w.find(path.Join(ws.dir.Path, name))
		if errors.Is(err, fs.ErrNotExist) {
			return w.guard(ws, guardedName{name: name, closed: true}, name)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range bareParts {
		if w.opened(name) {
			return nil
		}
	}
	return w.gitNames(ws)
}

// gitDir guards a directory of git that is in the workspace.
func (w *warden) gitDir(ws *ghostDir, name string) error {
	d, err := w.enter(ws, name)
	if err != nil {
		return err
	}
	if common := w.line(path.Join(d.dir.Path, "commondir")); common != "" && common != "." && !w.opened(".git/commondir") {
		return invalid("protect %s: its commondir has git look elsewhere: remove that, or let it be changed (allow write .git)", d.dir.Path)
	}
	return w.gitNames(d)
}

// enter pins a directory in the workspace and all on the way to it.
func (w *warden) enter(ws *ghostDir, name string) (*ghostDir, error) {
	parts := strings.Split(name, "/")
	var src rootfs.Source
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		var err error
		if src, err = w.find(path.Join(ws.dir.Path, at)); err != nil {
			return nil, err
		}
		w.bind(ws, at, src, false)
	}
	d := &ghostDir{dir: src, at: w.places(ws, name)}
	w.ghostDirs = append(w.ghostDirs, d)
	return d, nil
}

func (w *warden) gitNames(d *ghostDir) error {
	var errs []error
	for _, g := range guardedGit {
		errs = append(errs, w.guard(d, g, ".git/"+g.name))
	}
	return errors.Join(errs...)
}

// gitFile follows a .git that is a file. A guest of an earlier run may have
// written it, so it is no reason to mount anything outside the workspace unless
// what it leads to says the same.
func (w *warden) gitFile(ws *ghostDir, file rootfs.Source) error {
	dest, ok := strings.CutPrefix(w.line(file.Path), "gitdir: ")
	if !ok {
		w.notes = append(w.notes, file.Path+": not a file of git")
		return nil
	}
	if !filepath.IsAbs(dest) {
		dest = path.Join(ws.dir.Path, dest)
	}
	dest = path.Clean(dest)
	admin, err := w.find(dest)
	if err != nil || !admin.Dir { // it may hold anything, a guest wrote it
		return w.lost(ws, "is no directory", dest, admin.Path)
	}
	if common := w.line(path.Join(dest, "commondir")); common != "" && common != "." {
		return w.linked(ws, admin, path.Join(dest, common))
	}
	if rel, err := filepath.Rel(ws.dir.Path, dest); err == nil && filepath.IsLocal(rel) {
		return w.gitDir(ws, rel)
	}
	return w.lost(ws, "is not that of a linked worktree", dest)
}

// lost is what becomes of a .git that leads to the first of the paths, which is
// not as it should be: where a guest could write to any of them it could have
// the host's git execute what it likes.
func (w *warden) lost(ws *ghostDir, why string, paths ...string) error {
	from := path.Join(ws.dir.Path, ".git")
	if !w.opened(".git") && slices.ContainsFunc(paths, func(p string) bool { return rootfs.Within(ws.dir.Path, p) }) {
		return invalid("protect %s: it leads to %q, which %s: repair it, or let it be changed (allow write .git)", from, paths[0], why)
	}
	w.notes = append(w.notes, fmt.Sprintf("%s: leads to %q, which %s: git does not work inside", from, paths[0], why))
	return nil
}

// linked mounts the repository of which the workspace is a linked worktree.
// admin is the directory in it that is the worktree's own.
func (w *warden) linked(ws *ghostDir, admin rootfs.Source, common string) error {
	name := path.Join("worktrees", path.Base(admin.Path))
	back := w.line(path.Join(admin.Path, "gitdir"))
	if back != "" && !filepath.IsAbs(back) {
		back = path.Join(admin.Path, back)
	}
	src, err := w.find(common)
	switch {
	case err != nil || path.Join(common, name) != admin.Path || back != path.Join(ws.dir.Path, ".git"):
		return w.lost(ws, "does not lead back", admin.Path, common, src.Path)
	case src.UID != ws.dir.UID || admin.UID != ws.dir.UID:
		return w.lost(ws, "belongs to another user", admin.Path, common)
	case target("workspace", common) != nil:
		return target("workspace", common)
	}
	var d *ghostDir
	if rel, err := filepath.Rel(ws.dir.Path, common); err == nil && filepath.IsLocal(rel) {
		if d, err = w.enter(ws, rel); err != nil {
			return err
		}
	} else {
		d = &ghostDir{dir: src, at: []string{common}}
		w.ghostDirs = append(w.ghostDirs, d)
		w.bind(d, ".", src, false)
	}
	errs := []error{w.gitNames(d)}
	if w.opened(".git/worktrees") {
		return errors.Join(errs...)
	}
	// Of all worktrees, only this one may change, but not what it belongs to.
	w.bind(d, name, admin, false)
	for _, file := range []guardedName{{name: "commondir"}, {name: "gitdir"}, {name: "config.worktree", file: true}} {
		file.name = path.Join(name, file.name)
		errs = append(errs, w.guard(d, file, ".git/"+file.name))
	}
	return errors.Join(errs...)
}

// line is what a file of one line says, or "".
func (w *warden) line(file string) string {
	if w.host.ReadFile == nil {
		return ""
	}
	b, err := w.host.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(b), "\r\n")
}
