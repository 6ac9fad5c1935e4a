package protect

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

// git protects what git executes for the workspace, wherever that is.
//
//	.git is missing      a placeholder: a guest that made it could put hooks there
//	a directory          the protected names in it
//	a file, leading to   (gitrepository-layout(5))
//	  the workspace      the same, there
//	  a linked worktree  the main repository's, which is mounted for commits
//	  elsewhere          nothing more, and a note says so
func (w *planner) git(ws *Dir) error {
	if err := w.bareRepository(ws); err != nil {
		return err
	}
	const name = ".git"
	all := w.allowed(name)
	if !all {
		if to, ok := w.link(ws, name); ok {
			return w.gitBehind(ws, to)
		}
	}
	src, err := w.find(path.Join(ws.Source.Path, name))
	switch {
	case errors.Is(err, fs.ErrNotExist) && w.Watch:
		if all {
			return nil
		}
		ws.Watched = append(ws.Watched, Watched{Name: name, As: name, Why: "which git executes", What: Repository})
		return w.opened(name)
	case errors.Is(err, fs.ErrNotExist):
		return w.protect(ws, entry{name: name}, name)
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

// gitBehind protects the directory of git that a link leads to.
func (w *planner) gitBehind(ws *Dir, to string) error {
	rel, err := filepath.Rel(ws.Source.Path, to)
	if err == nil && filepath.IsLocal(rel) && rel != "." {
		if src, err := w.find(to); err == nil && src.Dir {
			return w.gitDir(ws, rel)
		}
		return w.lost(ws, "is no directory", to)
	}
	w.notes = append(w.notes, fmt.Sprintf("%s: leads to %q, outside of the workspace: git does not work inside",
		path.Join(ws.Source.Path, ".git"), to))
	return nil
}

// bareRepository keeps the workspace from becoming a repository itself: git takes a
// directory that has these parts for one, unless there is a valid .git, and a guest
// can break that. One missing part is enough to prevent it. A workspace that has all
// of them is a repository, and is protected as one.
func (w *planner) bareRepository(ws *Dir) error {
	if w.Watch {
		return w.watchBare(ws)
	}
	// A commondir could say that two of them are elsewhere.
	if err := w.protect(ws, entry{name: commonDir}, commonDir); err != nil {
		return err
	}
	for _, name := range repositoryParts {
		if w.allowed(name) {
			continue
		}
		_, err := w.find(path.Join(ws.Source.Path, name))
		if errors.Is(err, fs.ErrNotExist) {
			return w.protect(ws, entry{name: name, closed: true}, name)
		}
		if err != nil {
			return err
		}
	}
	if slices.ContainsFunc(repositoryParts, w.allowed) {
		return nil
	}
	return w.gitDirNames(ws)
}

// watchBare is bareRepository where what is missing is watched for.
func (w *planner) watchBare(ws *Dir) error {
	var had []string
	parts := 0
	for _, name := range append([]string{commonDir}, repositoryParts...) {
		_, err := w.find(path.Join(ws.Source.Path, name))
		switch {
		case err == nil && name != commonDir:
			parts++
		case errors.Is(err, fs.ErrNotExist) && !w.allowed(name):
			had = append(had, name)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if parts == len(repositoryParts) {
		if slices.ContainsFunc(repositoryParts, w.allowed) {
			return nil
		}
		return w.gitDirNames(ws)
	}
	if len(had) > 0 {
		ws.Watched = append(ws.Watched, Watched{
			Name: "HEAD", As: "HEAD", Why: "which makes the directory a repository of git", What: Bare, Had: had})
	}
	return nil
}

// gitDir protects a directory of git that is in the workspace.
func (w *planner) gitDir(ws *Dir, name string) error {
	d, err := w.enter(ws, name)
	if err != nil {
		return err
	}
	common := w.line(path.Join(d.Source.Path, "commondir"))
	if common != "" && common != "." && !w.allowed(".git/commondir") {
		return fmt.Errorf("protect %s: its commondir redirects git: "+
			"remove it, or allow changes (allow write .git)", d.Source.Path)
	}
	if _, err := w.find(path.Join(d.Source.Path, "config")); err == nil && w.Watch && !w.allowed(".git/config") {
		d.Watched = append(d.Watched, Watched{Name: "config.lock", As: ".git/config",
			Why: "which names commands that git executes", What: Lock})
	}
	return errors.Join(w.gitDirNames(d), w.worktrees(d))
}

// worktrees protects the directories in which git keeps what it needs for linked
// worktrees. Each must change for a commit there, but not what it belongs to.
func (w *planner) worktrees(d *Dir) error {
	const as = ".git/" + worktreesDir
	if w.allowed(as) {
		return nil
	}
	if !w.Watch || w.ReadDir == nil {
		return w.protect(d, entry{name: worktreesDir, missing: harmless, inGit: true}, as)
	}
	watched := Watched{Name: worktreesDir, As: as, Why: gitExecutes, What: Worktrees}
	src, err := w.find(path.Join(d.Source.Path, worktreesDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Watched = append(d.Watched, watched)
		return nil
	case err != nil:
		return err
	}
	names, err := w.ReadDir(src.Path)
	if err != nil {
		return err
	}
	w.bind(d, worktreesDir, src, false)
	var errs []error
	for _, name := range names {
		name = path.Join(worktreesDir, name)
		if admin, err := w.find(path.Join(d.Source.Path, name)); err == nil && admin.Dir {
			errs = append(errs, w.worktree(d, name, admin))
		}
	}
	watched.Had = names
	d.Watched = append(d.Watched, watched)
	return errors.Join(errs...)
}

// worktree pins git's directory of one linked worktree, and protects what says
// where its hooks and settings are.
func (w *planner) worktree(d *Dir, name string, admin rootfs.Source) error {
	w.bind(d, name, admin, false)
	var errs []error
	for _, file := range []entry{{name: "commondir"}, {name: "gitdir"}, {name: "config.worktree", file: true}} {
		file.name, file.inGit = path.Join(name, file.name), true
		errs = append(errs, w.protect(d, file, ".git/"+file.name))
	}
	return errors.Join(errs...)
}

// enter pins a directory in the workspace and every parent of it.
func (w *planner) enter(ws *Dir, name string) (*Dir, error) {
	parts := strings.Split(name, "/")
	var src rootfs.Source
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		var err error
		if src, err = w.find(path.Join(ws.Source.Path, at)); err != nil {
			return nil, err
		}
		w.bind(ws, at, src, false)
	}
	d := &Dir{Source: src, At: w.places(ws, name)}
	w.dirs = append(w.dirs, d)
	return d, nil
}

func (w *planner) gitDirNames(d *Dir) error {
	var errs []error
	for _, g := range gitNames {
		if g.name == worktreeConfig && w.ignoresWorktreeConfig(d) {
			g.inGit, g.why = false, gitExecutes
		}
		errs = append(errs, w.protect(d, g, ".git/"+g.name))
	}
	return errors.Join(errs...)
}

// ignoresWorktreeConfig reports whether git takes no settings from config.worktree. It
// looks for extensions.worktreeConfig in config alone, not in what that includes.
func (w *planner) ignoresWorktreeConfig(d *Dir) bool {
	if w.ReadFile == nil {
		return false
	}
	text, err := w.ReadFile(path.Join(d.Source.Path, "config"))
	return err == nil && len(text) < readSmall && !strings.Contains(strings.ToLower(string(text)), "worktreeconfig")
}

// gitFile follows a .git that is a file. A guest of an earlier run may have
// written it, so it is no reason to mount anything outside the workspace unless
// what it leads to says the same.
func (w *planner) gitFile(ws *Dir, file rootfs.Source) error {
	dest, ok := strings.CutPrefix(w.line(file.Path), "gitdir: ")
	if !ok {
		w.notes = append(w.notes, file.Path+": not a file of git")
		return nil
	}
	if !filepath.IsAbs(dest) {
		dest = path.Join(ws.Source.Path, dest)
	}
	dest = path.Clean(dest)
	admin, err := w.find(dest)
	if err != nil || !admin.Dir { // it may hold anything, a guest wrote it
		return w.lost(ws, "is no directory", dest, admin.Path)
	}
	if common := w.line(path.Join(dest, "commondir")); common != "" && common != "." {
		return w.linked(ws, admin, path.Join(dest, common))
	}
	if rel, err := filepath.Rel(ws.Source.Path, dest); err == nil && filepath.IsLocal(rel) {
		return w.gitDir(ws, rel)
	}
	return w.lost(ws, "is not that of a linked worktree", dest)
}

// lost treats a .git that leads to the first of the paths, which is not as it
// should be. It is an error if a guest can write to any of them: the guest could
// make the host's git execute anything.
func (w *planner) lost(ws *Dir, why string, paths ...string) error {
	from := path.Join(ws.Source.Path, ".git")
	if !w.allowed(".git") && slices.ContainsFunc(paths, func(p string) bool { return rootfs.Within(ws.Source.Path, p) }) {
		return fmt.Errorf("protect %s: it leads to %q, which %s: "+
			"repair it, or let it be changed (allow write .git)", from, paths[0], why)
	}
	w.notes = append(w.notes, fmt.Sprintf("%s: leads to %q, which %s: git does not work inside", from, paths[0], why))
	return nil
}

// linked mounts the repository of which the workspace is a linked worktree.
// admin is the directory in it that is the worktree's own.
func (w *planner) linked(ws *Dir, admin rootfs.Source, common string) error {
	name := path.Join(worktreesDir, path.Base(admin.Path))
	back := w.line(path.Join(admin.Path, "gitdir"))
	if back != "" && !filepath.IsAbs(back) {
		back = path.Join(admin.Path, back)
	}
	src, err := w.find(common)
	switch {
	case err != nil || path.Join(common, name) != admin.Path || back != path.Join(ws.Source.Path, ".git"):
		return w.lost(ws, "does not lead back", admin.Path, common, src.Path)
	case src.UID != ws.Source.UID || admin.UID != ws.Source.UID:
		return w.lost(ws, "belongs to another user", admin.Path, common)
	case w.Mountable(common) != nil:
		return w.Mountable(common)
	}
	var d *Dir
	if rel, err := filepath.Rel(ws.Source.Path, common); err == nil && filepath.IsLocal(rel) {
		if d, err = w.enter(ws, rel); err != nil {
			return err
		}
	} else {
		d = &Dir{Source: src, At: []string{common}}
		w.dirs = append(w.dirs, d)
		w.bind(d, ".", src, false)
	}
	errs := []error{w.gitDirNames(d)}
	if w.allowed(".git/" + worktreesDir) {
		return errors.Join(errs...)
	}
	// Of all worktrees, only this one may change.
	errs = append(errs, w.protect(d, entry{name: worktreesDir, missing: harmless, inGit: true}, ".git/"+worktreesDir),
		w.worktree(d, name, admin))
	return errors.Join(errs...)
}

// line is the content of a file of one line, or "".
func (w *planner) line(file string) string {
	if w.ReadFile == nil {
		return ""
	}
	b, err := w.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(b), "\r\n")
}
