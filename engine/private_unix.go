//go:build darwin || (linux && (amd64 || arm64))

package engine

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// barePrefix begins the names of the private directories of sandboxes without namespaces.
const barePrefix = "tegmen-bare-"

// makePrivateDir makes a directory for one sandbox, with a tmp and a workspace in it
// that are the guest's. It is locked as long as it is in use, so that those which
// a killed host has left behind are known: see sweepBare.
func makePrivateDir(h Host, id identity) (dir string, lock *os.File, err error) {
	temp, err := tempDir()
	if err != nil {
		return "", nil, err
	}
	for {
		if dir, err = os.MkdirTemp(temp, barePrefix); err != nil {
			return "", nil, err
		}
		lock, err = lockDir(dir)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
			continue // swept by another before it was locked
		}
		break
	}
	if err == nil {
		err = fillPrivateDir(h, dir, id)
	}
	if err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return "", nil, errors.Join(err, removeTree(dir))
	}
	return dir, lock, nil
}

// tempDir is what no link leads to: to that rights are given.
func tempDir() (string, error) { return filepath.EvalSymlinks(os.TempDir()) }

func fillPrivateDir(h Host, dir string, id identity) error {
	for _, d := range []string{"tmp", "workspace", "."} { // itself last: then it is the guest's
		d = filepath.Join(dir, d)
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if h.Become {
			if err := os.Lchown(d, id.hostUID, id.hostGID); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockDir opens and locks a directory that nobody else has locked.
func lockDir(dir string) (*os.File, error) {
	f, err := openOwn(dir)
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	held, err := statOf(f)
	if err == nil && held.Nlink == 0 {
		err = &os.PathError{Op: "lock", Path: dir, Err: unix.ENOENT}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweepBare removes directories of that guests' user that nobody has locked. What
// cannot be removed now is tried again by the next engine.
func sweepBare(h Host, id identity) {
	temp, err := tempDir()
	if err != nil {
		return // a start says so
	}
	left, err := filepath.Glob(filepath.Join(temp, barePrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		lock, err := lockDir(dir)
		if err != nil {
			continue
		}
		if st, err := statOf(lock); err == nil && st.Uid == uint32(id.hostUID) {
			_ = removeOwn(h, id, dir)
		}
		_ = lock.Close() // read only
	}
}

// removeOwn removes a directory that is the guest's, of whom something may be left
// to put links in the way.
func removeOwn(h Host, id identity, dir string) error {
	err := asGuest(h, id, func() error { return removeTree(dir) })
	if err != nil && h.Become && unix.Rmdir(dir) == nil { // it was empty, in a directory that guests do not write to
		return nil
	}
	return err
}

func statOf(f *os.File) (st unix.Stat_t, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return st, err
	}
	cerr := conn.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) })
	return st, errors.Join(cerr, err)
}
