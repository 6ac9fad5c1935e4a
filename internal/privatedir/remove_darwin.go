package privatedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a directory that a guest has filled, when nothing of the
// guest is left. A guest can have closed directories to their owner, and have
// made files immutable (chflags(2)).
func RemoveTree(dir string) error {
	open := func(path string, d fs.DirEntry, err error) error {
		if d == nil || d.Type()&fs.ModeSymlink != 0 {
			return nil // which is not to be followed, and can be removed
		}
		_ = unix.Chflags(path, 0) // where it cannot be done, removing says why
		if d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	}
	for {
		before := 0
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			before++
			return open(path, d, err)
		})
		err := os.RemoveAll(dir)
		if err == nil {
			return nil
		}
		after := 0
		_ = filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { after++; return nil })
		if after >= before { // no directory has become readable, and no file has gone
			return err
		}
	}
}

// openOwn opens a directory, even one that a guest has closed to its owner. The
// last part of the path must not be a link: others could have put it there.
func openOwn(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) && unix.Fchmodat(unix.AT_FDCWD, dir, 0o700, unix.AT_SYMLINK_NOFOLLOW) == nil {
		fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}
