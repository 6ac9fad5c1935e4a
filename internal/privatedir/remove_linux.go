package privatedir

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a directory that a guest has filled, when nothing of the
// guest is left. os.RemoveAll would not do: it gives up on directories that
// their owner may not search, and needs a descriptor for each level of depth.
// Here the content of a directory that is not empty is moved up, into dir itself.
func RemoveTree(dir string) error {
	top, err := openOwn(dir)
	if err != nil {
		return err
	}
	defer top.Close()
	if err := top.Chmod(0o700); err != nil {
		return err
	}
	fd, moved := int(top.Fd()), 0
	for {
		names, err := top.Readdirnames(1000)
		for _, name := range names {
			if err := flatten(fd, name, &moved); err != nil {
				return &os.PathError{Op: "remove", Path: dir + "/" + name, Err: err}
			}
		}
		if len(names) == 0 && err != nil { // at its end; what has been moved comes in the next round
			if unix.Rmdir(dir) == nil {
				return nil
			}
			if _, err := top.Seek(0, 0); err != nil {
				return err
			}
			if again, _ := top.Readdirnames(1); len(again) == 0 {
				return os.Remove(dir) // and why not
			}
			if _, err := top.Seek(0, 0); err != nil {
				return err
			}
		}
	}
}

// openOwn opens a directory, even one that a guest has closed to its owner. The
// last part of the path must not be a link: others could have put it there.
func openOwn(dir string) (*os.File, error) {
	path, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(path)
	// This name refers to the opened file, whatever is at its path now.
	same := "/proc/self/fd/" + strconv.Itoa(path)
	f, err := os.Open(same)
	if errors.Is(err, unix.EACCES) && os.Chmod(same, 0o700) == nil {
		f, err = os.Open(same)
	}
	return f, err
}

// flatten removes an entry of top, moving what is in it into top.
func flatten(top int, name string, moved *int) error {
	err := unix.Unlinkat(top, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if unix.Unlinkat(top, name, unix.AT_REMOVEDIR) == nil {
		return nil
	}
	var st unix.Stat_t
	if serr := unix.Fstatat(top, name, &st, unix.AT_SYMLINK_NOFOLLOW); serr != nil {
		return serr
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err
	}
	if err := openUp(top, name); err != nil {
		return err
	}
	fd, err := unix.Openat(top, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, inner := range names {
		for err = unix.EEXIST; err == unix.EEXIST; { // a guest may have used the name
			*moved++
			err = unix.Renameat2(fd, inner, top, "moved-"+strconv.Itoa(*moved), unix.RENAME_NOREPLACE)
			if err == unix.EACCES { // moving a directory changes its .., so it must be writable
				if err = openUp(fd, inner); err == nil {
					err = unix.EEXIST
				}
			}
		}
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
}

// openUp opens a directory to its owner, and nothing that a link leads to.
func openUp(parent int, name string) error {
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
}
