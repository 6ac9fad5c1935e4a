package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// maxChanges bounds the list: a guest's quota does not limit how much it deletes.
const maxChanges = 1 << 20

// Changes lists the differences sorted by path. A file that was only opened for writing,
// or rewritten with the same content, is not listed unless its owner may not read it in
// Lower. Paths longer than 4096 bytes, more than 1,048,576 changes and changes in a
// directory of Lower that its owner may not read are errors.
func (o *Overlay) Changes(ctx context.Context) (list []Change, err error) {
	err = o.with(ctx, func(w *walk) error {
		list, err = w.changes()
		return err
	})
	return list, err
}

// with calls f on both layers, with the identity of the files' owner.
func (o *Overlay) with(ctx context.Context, f func(*walk) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.as(func() error {
		w := &walk{
			ctx:   ctx,
			upper: layer{root: int(o.Upper.Fd()), opened: make(map[string]ownMode)},
			lower: layer{root: int(o.Lower.Fd())},
		}
		defer w.upper.lock()
		return f(w)
	})
}

func (o *Overlay) as(f func() error) error {
	if o.As == nil {
		return f()
	}
	return o.As(f)
}

// walk compares the layers.
type walk struct {
	ctx          context.Context
	upper, lower layer
	list         []Change
	buf          []byte // for contents
}

func (w *walk) changes() ([]Change, error) {
	w.list = nil
	if err := w.dir(".", true); err != nil {
		return nil, err
	}
	return w.list, nil
}

func (w *walk) add(c Change) error {
	if len(w.list) == maxChanges {
		return fmt.Errorf("more than %d changes", maxChanges)
	}
	w.list = append(w.list, c)
	return w.ctx.Err()
}

// dir compares a directory of the upper layer with the directory that it covers, if
// covers is set.
func (w *walk) dir(rel string, covers bool) error {
	names, ups, opaque, err := w.upper.entries(rel)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var lows map[string]lowerEntry
	if covers {
		if lows, err = w.covered(rel, names, opaque); err != nil && !vanished(err) {
			return err
		}
		if opaque { // it hides everything that it covers
			names = slices.AppendSeq(names, maps.Keys(lows))
			slices.Sort(names)
			names = slices.Compact(names)
		}
	}
	for _, name := range names {
		up, low := ups[name], lows[name]
		if up == nil || whiteout(up) {
			if low == nil {
				continue // created and removed again, or the host has removed it as well
			}
			err = w.deleted(path.Join(rel, name), low)
		} else {
			err = w.entry(path.Join(rel, name), up, low)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type lowerEntry = *unix.Stat_t

// covered lists files in a directory of the lower layer: all, or those with the names.
func (w *walk) covered(rel string, names []string, all bool) (map[string]lowerEntry, error) {
	if all {
		_, lows, _, err := w.lower.entries(rel)
		return lows, err
	}
	fd, err := w.lower.open(rel, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	lows := make(map[string]lowerEntry)
	for _, name := range names {
		st, err := w.lower.statAt(fd, name, path.Join(rel, name))
		if err != nil {
			return nil, err
		}
		if st != nil {
			lows[name] = st
		}
	}
	return lows, nil
}

// entry compares a file of the upper layer with what it covers.
func (w *walk) entry(rel string, up *unix.Stat_t, low lowerEntry) error {
	c := Change{
		Path: rel, Kind: Created, Info: info(up), lower: stampOf(low), upper: stampOf(up),
		blocks: up.Blocks * 512, links: uint64(up.Nlink),
	}
	if low != nil {
		c.Kind, c.Was = Modified, info(low)
		if same, err := w.same(c); err != nil && !vanished(err) {
			return err
		} else if same {
			return w.inside(c)
		}
	}
	if err := w.add(c); err != nil {
		return err
	}
	if c.Was.Type == Dir && c.Type != Dir {
		return w.gone(rel)
	}
	return w.inside(c)
}

func (w *walk) inside(c Change) error {
	if c.Type != Dir {
		return nil
	}
	return w.dir(c.Path, c.Was.Type == Dir)
}

// deleted adds a deletion, for a directory with its contents.
func (w *walk) deleted(rel string, low lowerEntry) error {
	if err := w.add(Change{Path: rel, Kind: Deleted, Info: info(low), lower: stampOf(low)}); err != nil {
		return err
	}
	if kind(low.Mode) != Dir {
		return nil
	}
	return w.gone(rel)
}

// gone adds deletions for the contents of a directory of the lower layer.
func (w *walk) gone(rel string) error {
	names, lows, _, err := w.lower.entries(rel)
	if vanished(err) || errors.Is(err, unix.EACCES) { // if unreadable, it cannot be emptied either
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.deleted(path.Join(rel, name), lows[name]); err != nil {
			return err
		}
	}
	return nil
}

// vanished reports whether a file has been removed or changed since it was listed, by
// a guest or by the host.
func vanished(err error) bool {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EINVAL, errMeanwhile} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// same reports whether a file was only copied up and is otherwise unchanged.
func (w *walk) same(c Change) (bool, error) {
	if c.Info != c.Was {
		return false, nil
	}
	switch c.Type {
	case Symlink:
		up, err1 := w.upper.link(c.Path)
		low, err2 := w.lower.link(c.Path)
		return up == low, errors.Join(err1, err2)
	case File:
		return w.sameContent(c)
	}
	return true, nil
}

func (w *walk) sameContent(c Change) (bool, error) {
	up, _, err := w.upper.file(c.Path)
	if err != nil {
		return false, err
	}
	defer up.Close()
	low, _, err := w.lower.file(c.Path)
	if errors.Is(err, unix.EACCES) {
		return false, nil // unreadable for the host's user: cannot be compared
	}
	if err != nil {
		return false, err
	}
	defer low.Close()
	// Skip holes that both have: they read as zeros, and nothing limits a guest's.
	for at := int64(0); at < c.Size; {
		if err := w.ctx.Err(); err != nil {
			return false, err
		}
		if at = min(nextData(int(up.Fd()), at, c.Size), nextData(int(low.Fd()), at, c.Size)); at == c.Size {
			break
		}
		n := min(c.Size-at, block)
		a, b := w.buffer()[:n], w.buffer()[block:block+n]
		_, err1 := up.ReadAt(a, at)
		_, err2 := low.ReadAt(b, at)
		if err := errors.Join(err1, err2); errors.Is(err, io.EOF) || string(a) != string(b) {
			return false, nil // it was truncated meanwhile
		} else if err != nil {
			return false, err
		}
		at += n
	}
	return true, nil
}

const block = 256 << 10

func (w *walk) buffer() []byte {
	if w.buf == nil {
		w.buf = make([]byte, 2*block)
	}
	return w.buf
}

// nextData returns the offset of the next data of a file, or its size. On a file system
// without holes everything is data.
func nextData(fd int, at, size int64) int64 {
	next, err := unix.Seek(fd, at, unix.SEEK_DATA)
	if err == unix.ENXIO {
		return size
	}
	if err != nil {
		return at
	}
	return min(next, size)
}
