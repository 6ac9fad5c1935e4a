package workspace

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// errnoAt adds the operation and path to an error; nil stays nil.
func errnoAt(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// temporary returns an unused name for the new file beside the one it replaces.
func temporary() string { return ".tegmen-" + rand.Text() }

// moveIntoPlace renames a complete file to its name. It replaces an existing file only
// if there was one when the change was found.
func moveIntoPlace(dir int, temp, name string, c Change) error {
	if c.Kind == Modified {
		return errnoAt("rename", c.Path, unix.Renameat(dir, temp, dir, name))
	}
	err := unix.Renameat2(dir, temp, dir, name, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL { // the file system does not support RENAME_NOREPLACE
		if err = unix.Linkat(dir, temp, dir, name, 0); err == nil {
			err = unix.Unlinkat(dir, temp, 0)
		}
	}
	if err == unix.EEXIST {
		err = ErrConflict
	}
	return errnoAt("rename", c.Path, err)
}

// removeTemporary removes a file that could not be moved into place because of err.
func removeTemporary(dir int, temp string, err error) error {
	if err == nil {
		return nil
	}
	if rerr := unix.Unlinkat(dir, temp, 0); rerr != nil && rerr != unix.ENOENT {
		err = errors.Join(err, errnoAt("remove", temp, rerr))
	}
	return err
}

// removeReplacedDir removes the empty directory that another type of file replaces.
func removeReplacedDir(dir int, name string, c *Change) error {
	if c.Was.Type != Dir {
		return nil
	}
	c.Kind = Created // from here on there is nothing to replace
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
	err = removeReplacedDir(dir, name, &c)
	if err == nil {
		err = moveIntoPlace(dir, temp, name, c)
	}
	return removeTemporary(dir, temp, err)
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
		err = removeReplacedDir(dir, name, &c)
	}
	if err == nil {
		err = moveIntoPlace(dir, temp, name, c)
	}
	return removeTemporary(dir, temp, err)
}

// fill copies the data of a file, at most as much as it had when it was opened.
func (a *applier) fill(to, from *os.File, st *unix.Stat_t) error {
	left := st.Size
	if a.inMemory() {
		left = st.Blocks*512 + block // so a guest that fills holes meanwhile gains nothing
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

// inMemory reports whether the upper layer is a tmpfs. It does not compress, so the
// number of blocks bounds the data.
func (a *applier) inMemory() bool {
	var st unix.Statfs_t
	return unix.Fstatfs(a.upper.root, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// endOfData returns where the data at an offset ends.
func endOfData(fd int, at, size int64) int64 {
	next, err := unix.Seek(fd, at, unix.SEEK_HOLE)
	if err != nil || next <= at {
		return size
	}
	return min(next, size)
}
