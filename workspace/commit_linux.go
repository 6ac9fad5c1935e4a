package workspace

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Commit applies the changes to Lower. It first lists them and refuses them as a whole
// with a RefusedError if the Rules do not allow one (ErrProtected) or the host has
// changed a file that would be replaced (ErrConflict). It then writes each file beside
// the one it replaces and renames it; removals come last. If this fails halfway, the
// error is a CommitError that lists what was done.
//
// Files belong to the user of As and keep their permission bits, but not setuid, setgid,
// sticky and extended attributes. Each name of a hard link becomes a separate file.
// Holes are kept. Symbolic links are created as they are and not followed. FIFOs, sockets
// and devices are skipped, and what they replace stays. A modified file that the host has
// removed meanwhile is created again.
//
// Commit does not sync to disk. If the process is killed, a file .tegmen-… may be left
// beside the one that it would have replaced.
func (o *Overlay) Commit(ctx context.Context, opt CommitOptions) (done *Committed, err error) {
	err = o.with(ctx, func(w *walk) error {
		done, err = o.commit(w, opt)
		return err
	})
	return done, err
}

func (o *Overlay) commit(w *walk, opt CommitOptions) (*Committed, error) {
	list, err := w.changes()
	if err != nil {
		return nil, err
	}
	done := new(Committed)
	todo, skipped := leaveOut(list)
	done.Skipped = skipped
	if err := o.check(todo, opt); err != nil {
		return nil, err
	}
	if o.committed == nil {
		o.committed = make(map[string]stamp)
	}
	a := &applier{walk: w, o: o}
	for _, step := range inOrder(todo) {
		err := w.ctx.Err()
		if err == nil {
			err = a.apply(step)
		}
		if err != nil {
			return done, &CommitError{Path: step.Path, Applied: done.Applied, Err: err}
		}
		done.Applied = append(done.Applied, step)
	}
	if path, err := a.closeDirs(); err != nil {
		return done, &CommitError{Path: path, Applied: done.Applied, Err: err}
	}
	return done, nil
}

// leaveOut separates what can be committed from FIFOs, sockets and devices, whose
// paths stay as they are in Lower.
func leaveOut(list []Change) (todo, skipped []Change) {
	kept := ""
	for _, c := range list {
		switch {
		case kept != "" && within(kept, c.Path):
			skipped = append(skipped, c)
		case c.Kind != Deleted && !c.Type.commits():
			kept = c.Path
			skipped = append(skipped, c)
		default:
			todo = append(todo, c)
		}
	}
	return todo, skipped
}

// commits reports whether a type can be committed.
func (t Type) commits() bool { return t == File || t == Dir || t == Symlink }

// check refuses a commit before anything is changed.
func (o *Overlay) check(list []Change, opt CommitOptions) error {
	var protected, changed []string
	linked := make(map[stamp]bool)
	var copies int64
	for _, c := range list {
		if !o.Rules.allows(c) {
			protected = append(protected, c.Path)
		}
		if o.conflicts(c) {
			changed = append(changed, c.Path)
		}
		if c.Type == File && c.Kind != Deleted && c.links > 1 {
			if linked[c.upper] {
				copies += c.blocks
			}
			linked[c.upper] = true
		}
	}
	switch {
	case len(protected) > 0:
		return &RefusedError{protected, ErrProtected}
	case len(changed) > 0 && !opt.Force:
		return &RefusedError{changed, ErrConflict}
	case copies > o.Slack:
		return fmt.Errorf("nothing was committed: copies of hard links would take %d bytes, more than the allowed %d",
			copies, o.Slack)
	}
	return nil
}

// conflicts reports whether the host has changed what a change would replace. The time
// of a directory does not matter: its contents are listed separately.
func (o *Overlay) conflicts(c Change) bool {
	if c.lower == (stamp{}) || c.lower.ctime <= o.Since.UnixNano() || o.committed[c.Path] == c.lower {
		return false
	}
	return !(c.Was.Type == Dir || c.Kind == Deleted && c.Type == Dir)
}

// inOrder puts first the removal of what is in directories that other types of files
// replace, the deepest first. Then come creations and modifications, and at last other
// removals: if the commit fails halfway, there is too much rather than too little.
func inOrder(list []Change) []Change {
	var emptied, written, deleted []Change
	replaced := ""
	for _, c := range list {
		switch {
		case c.Kind == Deleted && replaced != "" && within(replaced, c.Path):
			emptied = append(emptied, c)
			continue
		case c.Kind == Deleted:
			deleted = append(deleted, c)
			continue
		case c.Was.Type == Dir && c.Type != Dir:
			replaced = c.Path
		}
		written = append(written, c)
	}
	slices.Reverse(emptied)
	slices.Reverse(deleted)
	return slices.Concat(emptied, written, deleted)
}

// applier changes the lower layer.
type applier struct {
	*walk
	o    *Overlay
	dirs []Change // directories whose modes are set at the end
}

func (a *applier) apply(c Change) error {
	dir, name, err := a.lower.parent(c.Path)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := a.unchanged(dir, name, c); err != nil {
		return err
	}
	switch {
	case c.Kind == Deleted && c.Type == Dir:
		return errnoAt("remove", c.Path, unix.Unlinkat(dir, name, unix.AT_REMOVEDIR))
	case c.Kind == Deleted:
		return errnoAt("remove", c.Path, unix.Unlinkat(dir, name, 0))
	case c.Type == Dir:
		err = a.dirAt(dir, name, c)
	case c.Type == Symlink:
		err = a.symlink(dir, name, c)
	default:
		err = a.file(dir, name, c)
	}
	if err == nil {
		st, serr := a.lower.statAt(dir, name, c.Path)
		err, a.o.committed[c.Path] = serr, stampOf(st)
	}
	return err
}

// unchanged returns ErrConflict if the file to replace is not the one that was compared.
func (a *applier) unchanged(dir int, name string, c Change) error {
	st, err := a.lower.statAt(dir, name, c.Path)
	if err != nil {
		return err
	}
	now := stampOf(st)
	if st != nil && kind(st.Mode) == Dir {
		now.ctime = c.lower.ctime // a directory's changes with its contents
	}
	if now != c.lower {
		return ErrConflict
	}
	return nil
}

// dirAt creates a directory, or makes an existing one writable.
func (a *applier) dirAt(dir int, name string, c Change) error {
	if c.Kind == Modified && c.Was.Type != Dir {
		if err := unix.Unlinkat(dir, name, 0); err != nil {
			return errnoAt("remove", c.Path, err)
		}
	}
	if c.Was.Type != Dir {
		if err := unix.Mkdirat(dir, name, 0o700); err != nil {
			return errnoAt("mkdir", c.Path, err)
		}
	}
	a.dirs = append(a.dirs, c)
	return a.setDir(c, c.Mode|0o700)
}

// closeDirs sets the final modes of directories.
func (a *applier) closeDirs() (path string, err error) {
	for _, c := range slices.Backward(a.dirs) {
		if c.Mode&0o700 != 0o700 {
			if err := a.setDir(c, c.Mode); err != nil {
				return c.Path, err
			}
		}
	}
	return "", nil
}

func (a *applier) setDir(c Change, mode uint32) error {
	fd, err := a.lower.open(c.Path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errnoAt("stat", c.Path, err)
	}
	// Keep the set-group-ID bit, which new directories inherit.
	return errnoAt("chmod", c.Path, unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode|st.Mode&unix.S_ISGID))
}
