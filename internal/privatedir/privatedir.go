//go:build darwin || (linux && (amd64 || arm64))

// Package privatedir makes and removes the directory of its own that a sandbox
// without namespaces has on the host. Guests own it and may leave anything in it,
// so it is touched as their user and no link in it is followed.
package privatedir

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/ns"
)

// prefix begins the names of private directories.
const prefix = "tegmen-private-"

// An Owner is who guests are on the host.
type Owner struct {
	IDs    ns.IDs // the user of the guests
	Become bool   // this process is root, and guests are another user
}

// A Dir is the private directory of one sandbox, with a tmp and a workspace in it
// that are the guest's. It is locked as long as it is in use, so that those that a
// killed host has left behind are known; see Sweep.
type Dir struct {
	Path  string // absolute, with links resolved: rights are given to it
	owner Owner
	lock  *os.File

	removing sync.Mutex // what one removes another would miss
}

// Make makes one. The caller calls Close.
func Make(o Owner) (_ *Dir, err error) {
	temp, err := tempDir()
	if err != nil {
		return nil, err
	}
	d := &Dir{owner: o}
	for {
		if d.Path, err = os.MkdirTemp(temp, prefix); err != nil {
			return nil, err
		}
		d.lock, err = lock(d.Path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
			continue // swept by another before it was locked
		}
		break
	}
	if err == nil {
		err = d.fill()
	}
	if err != nil {
		if d.lock != nil {
			err = errors.Join(err, d.lock.Close())
		}
		return nil, errors.Join(err, RemoveTree(d.Path))
	}
	return d, nil
}

// RemoveChild removes a directory in it. It may be gone already, with all the rest.
func (d *Dir) RemoveChild(path string) error {
	d.removing.Lock()
	defer d.removing.Unlock()
	if err := d.owner.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Close removes the directory. Nothing of the sandbox runs any more.
func (d *Dir) Close() error {
	d.removing.Lock()
	defer d.removing.Unlock()
	// Unlocked when it is gone: others remove what they find unlocked.
	return errors.Join(d.owner.Remove(d.Path), d.lock.Close())
}

// Abandon leaves the directory to the next Sweep: something still uses it.
func (d *Dir) Abandon() error { return d.lock.Close() }

// tempDir is where directories are made, with links resolved.
func tempDir() (string, error) { return filepath.EvalSymlinks(os.TempDir()) }

func (d *Dir) fill() error {
	for _, name := range []string{"tmp", "workspace", "."} { // itself last: then it is the guest's
		at := filepath.Join(d.Path, name)
		if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if d.owner.Become {
			if err := os.Lchown(at, d.owner.IDs.HostUID, d.owner.IDs.HostGID); err != nil {
				return err
			}
		}
	}
	return nil
}

// lock opens and locks a directory that nobody else has locked.
func lock(dir string) (*os.File, error) {
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

// Sweep removes directories of that guests' user that nobody has locked. What
// cannot be removed now is tried again by the next engine.
func Sweep(o Owner) {
	temp, err := tempDir()
	if err != nil {
		return // Make reports it
	}
	left, err := filepath.Glob(filepath.Join(temp, prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		held, err := lock(dir)
		if err != nil {
			continue
		}
		if st, err := statOf(held); err == nil && st.Uid == uint32(o.IDs.HostUID) {
			_ = o.Remove(dir) // the next sweep finds it again
		}
		_ = held.Close() // read only
	}
}

// Remove removes a directory that is the guest's, of whom something may be left to
// put links in the way.
func (o Owner) Remove(dir string) error {
	err := o.Do(func() error { return RemoveTree(dir) })
	if err != nil && o.Become && unix.Rmdir(dir) == nil { // it was empty, in a directory that guests do not write to
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
