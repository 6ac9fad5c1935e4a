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

// maxChanges bounds the list: what a guest deletes is not bounded by what it may
// write.
const maxChanges = 1 << 20

// Changes lists what is different, in the order of paths. A file that was only
// opened for writing, or written as it was, is not, unless its owner may not read it
// in the lower. Names deeper than 4096 bytes are an error, and so are more than
// 1048576 changes, or changes in a directory of the lower that its owner may not
// read; the context can end it.
func (o *Overlay) Changes(ctx context.Context) (list []Change, err error) {
	err = o.with(ctx, func(w *walk) error {
		list, err = w.changes()
		return err
	})
	return list, err
}

// with opens the layers to f, as the files' owner.
func (o *Overlay) with(ctx context.Context, f func(*walk) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.as(func() error {
		w := &walk{ctx: ctx, upper: layer{int(o.Upper.Fd()), make(map[string]ownMode)}, lower: layer{root: int(o.Lower.Fd())}}
		defer w.upper.lock()
		return f(w)
	})
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

// dir compares a directory of the upper with what it covers, if that is a
// directory, too.
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
		if opaque { // what it does not have itself is gone
			names = slices.Compact(slices.Sorted(slices.Values(append(names, slices.Collect(maps.Keys(lows))...))))
		}
	}
	for _, name := range names {
		up, low := ups[name], lows[name]
		if up == nil || whiteout(up) {
			if low == nil {
				continue // it was made and removed again, or the host has removed it, too
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

// covered is what stands in a directory of the lower: all of it, or by these names.
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

// entry compares what stands at a path in the upper with what it covers.
func (w *walk) entry(rel string, up *unix.Stat_t, low lowerEntry) error {
	c := Change{Path: rel, Kind: Created, Info: info(up), lower: markOf(low), upper: markOf(up), blocks: up.Blocks * 512, links: uint64(up.Nlink)}
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

// deleted lists what is no longer there.
func (w *walk) deleted(rel string, low lowerEntry) error {
	if err := w.add(Change{Path: rel, Kind: Deleted, Info: info(low), lower: markOf(low)}); err != nil {
		return err
	}
	if kind(low.Mode) != Dir {
		return nil
	}
	return w.gone(rel)
}

// gone lists what was in a directory of the lower.
func (w *walk) gone(rel string) error {
	names, lows, _, err := w.lower.entries(rel)
	if vanished(err) || errors.Is(err, unix.EACCES) { // then it cannot be removed either
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

// vanished tells whether what was there a moment before is no longer, or is being
// changed: a guest is at work, or someone on the host.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EINVAL) || errors.Is(err, errMeanwhile)
}

// same tells whether a path has not changed but for having been copied up.
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
		return false, nil // one that the host's own user may not read: it cannot be the same to anyone
	}
	if err != nil {
		return false, err
	}
	defer low.Close()
	// Holes read as zeros, and are passed over where both have one: a guest's are
	// limited by nothing.
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
			return false, nil // shorter meanwhile
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

// nextData is where the next data of a file is, or its end. Where a file system has
// no holes, all is data.
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
