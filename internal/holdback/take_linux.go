//go:build amd64 || arm64

package holdback

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/privatedir"
)

// take moves what has a name in a directory into the store. Its error is
// fs.ErrNotExist if it is gone.
func (s *Store) take(dir int, name string, it Item) error {
	at, err := s.make(&it)
	if err != nil {
		return fmt.Errorf("make %s: %v", s.dir, err) // no fs.ErrNotExist
	}
	err = s.move(dir, name, filepath.Join(at, dataName))
	if err != nil {
		err = errors.Join(err, removeAll(at))
	}
	return err
}

// move is a rename, and a copy where the store is on another file system. Only the
// owner of the workspace is in the way of it, who is the guest: it may have closed
// the directory, or what is in it.
func (s *Store) move(dir int, name, to string) error {
	err := unix.Renameat2(dir, name, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err == unix.EACCES || err == unix.EPERM {
		// Writable for the moment, the directory as well as what moves: its ".."
		// changes.
		before, ok := widen(dir)
		openUp(dir, name)
		err = unix.Renameat2(dir, name, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
		if ok {
			_ = unix.Chmod(magic(dir), before)
		}
	}
	if err == unix.EXDEV {
		err = copyTree(dir, name, to, 0)
		if err == nil {
			err = remove(dir, name)
		}
	}
	if err != nil {
		return fmt.Errorf("move to %s: %w", to, err)
	}
	return nil
}

// magic is a path for an open file, whatever is at its own path now.
func magic(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// widen opens a directory to its owner, and returns the mode that it had.
func widen(dir int) (before uint32, ok bool) {
	var st unix.Stat_t
	if unix.Fstat(dir, &st) != nil {
		return 0, false
	}
	before = st.Mode & 0o7777
	return before, unix.Chmod(magic(dir), before|0o700) == nil
}

// openUp opens a directory to its owner, and nothing that a link leads to.
func openUp(dir int, name string) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Chmod(magic(fd), 0o700) // where it cannot be done, the next step says why
		_ = unix.Close(fd)
	}
}

// openDir opens a directory for reading, even one that a guest has closed.
func openDir(dir int, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	if err == unix.EACCES {
		openUp(dir, name)
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// What is deeper, or larger, is cut off: a guest could fill the store's disk with a
// file that takes no room on its own, or use up this process's descriptors.
const (
	maxDepth = 64
	maxFile  = 64 << 20
)

// copyTree copies files, links and directories; a guest may change them meanwhile.
// What else there is, such as a FIFO, is left out: no program reads settings from it.
func copyTree(dir int, name, to string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return err
		}
		return os.Symlink(string(buf[:n]), to)
	case unix.S_IFREG:
		return copyFile(dir, name, to)
	case unix.S_IFDIR:
		return copyDir(dir, name, to, depth)
	}
	return nil
}

func copyDir(dir int, name, to string, depth int) error {
	d, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := os.Mkdir(to, 0o700); err != nil || depth == maxDepth {
		return err
	}
	names, err := d.Readdirnames(-1)
	for _, inner := range names {
		if err == nil {
			err = gone(copyTree(int(d.Fd()), inner, filepath.Join(to, inner), depth+1))
		}
	}
	return err
}

func copyFile(dir int, name, to string) error {
	// What is no file any more does not block.
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	from := os.NewFile(uintptr(fd), name)
	defer from.Close()
	st, err := from.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, st.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(from, maxFile))
	return errors.Join(err, f.Close())
}

func remove(dir int, name string) error {
	if err := unix.Unlinkat(dir, name, 0); err != unix.EISDIR {
		return err
	}
	return privatedir.RemoveTree(magic(dir) + "/" + name)
}

// gone forgives that a guest has removed something itself.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
