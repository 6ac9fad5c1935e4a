package workspace

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Commit makes the lower what the overlay shows. It looks for what has changed at
// that moment, and refuses all of it with a RefusedError where the Rules do not
// allow something (ErrProtected) or the host has changed a file that would be
// replaced (ErrConflict). Then each file is written beside what it replaces and
// takes its place at once; what is removed comes last. Where that fails half-way,
// the error is a CommitError that lists what was done.
//
// Files belong to who commits, that is As, and have their permission bits, but no
// setuid, setgid or sticky one, and no attributes. Each name of a hard link becomes
// a file of its own; holes stay holes. Symbolic links are made as they are and not
// followed. FIFOs, sockets and devices are skipped, together with what they replace.
// Nothing is synced to disk, and a process that is killed meanwhile may leave a file
// .tegmen-… beside the one that it was to become. What a file that the host has removed meanwhile was
// changed to is made again.
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
		o.committed = make(map[string]mark)
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

// leaveOut parts what can be committed from the rest: where something else is to
// stand than a file, a directory or a link, what stands there stays.
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

// check refuses what is not to be done, before anything is.
func (o *Overlay) check(list []Change, opt CommitOptions) error {
	var against, changed []string
	linked := make(map[mark]bool)
	var copies int64
	for _, c := range list {
		if !o.Rules.allows(c) {
			against = append(against, c.Path)
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
	case len(against) > 0:
		return &RefusedError{against, ErrProtected}
	case len(changed) > 0 && !opt.Force:
		return &RefusedError{changed, ErrConflict}
	case copies > o.Slack:
		return fmt.Errorf("nothing was committed: hard links would become %d bytes of copies, and %d are allowed", copies, o.Slack)
	}
	return nil
}

// conflicts tells whether the host has changed what is to be replaced. The time of
// a directory says nothing about what it holds, which is listed by itself.
func (o *Overlay) conflicts(c Change) bool {
	if c.lower == (mark{}) || c.lower.ctime <= o.Since.UnixNano() || o.committed[c.Path] == c.lower {
		return false
	}
	return !(c.Was.Type == Dir || c.Kind == Deleted && c.Type == Dir)
}

// inOrder puts first what makes room: what was in a directory in whose place
// something else is to stand, the deepest first. Then comes what is made, and at
// last what goes: should it fail before, too much is there and not too little.
func inOrder(list []Change) []Change {
	var room, made, gone []Change
	replaced := ""
	for _, c := range list {
		switch {
		case c.Kind == Deleted && replaced != "" && within(replaced, c.Path):
			room = append(room, c)
			continue
		case c.Kind == Deleted:
			gone = append(gone, c)
			continue
		case c.Was.Type == Dir && c.Type != Dir:
			replaced = c.Path
		}
		made = append(made, c)
	}
	slices.Reverse(room)
	slices.Reverse(gone)
	return slices.Concat(room, made, gone)
}

// applier changes the lower.
type applier struct {
	*walk
	o    *Overlay
	dirs []Change // that get their modes at the end
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
		err, a.o.committed[c.Path] = serr, markOf(st)
	}
	return err
}

// unchanged makes sure that what is replaced is what has been compared.
func (a *applier) unchanged(dir int, name string, c Change) error {
	st, err := a.lower.statAt(dir, name, c.Path)
	if err != nil {
		return err
	}
	now := markOf(st)
	if st != nil && kind(st.Mode) == Dir {
		now.ctime = c.lower.ctime // that of a directory changes with what is in it
	}
	if now != c.lower {
		return ErrConflict
	}
	return nil
}

// dirAt makes a directory, or lets things be made in one.
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

// closeDirs gives directories the modes that they are to have.
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
	// Directories made in one that gives them its group do so, too.
	return errnoAt("chmod", c.Path, unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode|st.Mode&unix.S_ISGID))
}
