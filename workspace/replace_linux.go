package workspace

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// errnoAt says what was being done; nil stays nil.
func errnoAt(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// temporary is a name that nothing has, beside what is to be replaced.
func temporary() string { return ".tegmen-" + rand.Text() }

// take moves what is complete to its place: instead of what stands there, or, where
// nothing did, unless something does now.
func take(dir int, temp, name string, c Change) error {
	if c.Kind == Modified {
		return errnoAt("rename", c.Path, unix.Renameat(dir, temp, dir, name))
	}
	err := unix.Renameat2(dir, temp, dir, name, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL { // a file system that has no such thing
		if err = unix.Linkat(dir, temp, dir, name, 0); err == nil {
			err = unix.Unlinkat(dir, temp, 0)
		}
	}
	if err == unix.EEXIST {
		err = ErrConflict
	}
	return errnoAt("rename", c.Path, err)
}

// drop removes what did not get to its place.
func drop(dir int, temp string, err error) error {
	if err == nil {
		return nil
	}
	if rerr := unix.Unlinkat(dir, temp, 0); rerr != nil && rerr != unix.ENOENT {
		err = errors.Join(err, errnoAt("remove", temp, rerr))
	}
	return err
}

// room removes an empty directory in whose place something else is to stand.
func room(dir int, name string, c *Change) error {
	if c.Was.Type != Dir {
		return nil
	}
	c.Kind = Created // in the place of nothing, from here on
	return errnoAt("remove", c.Path, unix.Unlinkat(dir, name, unix.AT_REMOVEDIR))
}

func (a *applier) symlink(dir int, name string, c Change) error {
	target, err := a.upper.link(c.Path)
	if err != nil {
		return err
	}
	temp := temporary()
	if err := unix.Symlinkat(target, dir, temp); err != nil {
		return errnoAt("symlink", c.Path, err)
	}
	err = room(dir, name, &c)
	if err == nil {
		err = take(dir, temp, name, c)
	}
	return drop(dir, temp, err)
}

func (a *applier) file(dir int, name string, c Change) error {
	from, st, err := a.upper.file(c.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	temp := temporary()
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return errnoAt("create", c.Path, err)
	}
	to := os.NewFile(uintptr(fd), temp)
	err = a.fill(to, from, st)
	if err == nil {
		err = errnoAt("chmod", c.Path, unix.Fchmod(fd, c.Mode))
	}
	err = errors.Join(err, to.Close())
	if err == nil {
		err = room(dir, name, &c)
	}
	if err == nil {
		err = take(dir, temp, name, c)
	}
	return drop(dir, temp, err)
}

// fill copies the data of a file, and no more than there was when it was opened.
func (a *applier) fill(to, from *os.File, st *unix.Stat_t) error {
	left := st.Size
	if a.inMemory() {
		left = st.Blocks*512 + block // filling holes meanwhile does not make it more
	}
	for at := int64(0); ; {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if at = nextData(int(from.Fd()), at, st.Size); at >= st.Size {
			return to.Truncate(st.Size)
		}
		n, err := from.ReadAt(a.buffer()[:min(block, st.Size-at, endOfData(int(from.Fd()), at, st.Size)-at)], at)
		if left -= int64(n); n == 0 || left < 0 {
			return errors.Join(errMeanwhile, err)
		}
		if err != nil && err != io.EOF {
			return err
		}
		if _, err := to.WriteAt(a.buffer()[:n], at); err != nil {
			return err
		}
		at += int64(n)
	}
}

// inMemory tells whether the upper is a tmpfs, which does not compress: its blocks
// say how much data there is.
func (a *applier) inMemory() bool {
	var st unix.Statfs_t
	return unix.Fstatfs(a.upper.root, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// endOfData is where the data at a place ends.
func endOfData(fd int, at, size int64) int64 {
	next, err := unix.Seek(fd, at, unix.SEEK_HOLE)
	if err != nil || next <= at {
		return size
	}
	return min(next, size)
}
