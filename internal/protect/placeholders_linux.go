package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// Held is a directory with placeholders in it, for one sandbox. They are there
// before the sandbox is made, since it mounts on them, and are removed when nothing
// in it can run any more: removing what is mounted on takes the mount away, in
// every namespace.
type Held struct {
	Dir
	file, lock *os.File // lock is nil where no placeholders can be made
	lockID     rootfs.Identity
	guest      Guest
	sources    map[string]rootfs.Source // the placeholders that have been made
}

// Guest is who may write to a workspace.
type Guest struct {
	UID   int  // its user on the host
	Other bool // guests may be another user than this process
}

// ErrUnwritable reports that no guest can make anything in a directory, so that
// nothing need stand in its way.
var ErrUnwritable = errors.New("not writable")

// Descriptors returns the directory and its lock, and which lock that is.
func (d *Held) Descriptors() (dirFD, lockFD int, lock rootfs.Identity) {
	return int(d.file.Fd()), int(d.lock.Fd()), d.lockID
}

// Locked reports whether placeholders can be made.
func (d *Held) Locked() bool { return d.lock != nil }

// Made is what stands for a placeholder, if it has been made.
func (d *Held) Made(name string) (rootfs.Source, bool) {
	src, ok := d.sources[name]
	return src, ok
}

// Open opens the directory that a decision means. Its error is rootfs.ErrChanged if
// another one is there now.
func Open(h Dir, g Guest) (*Held, error) {
	fd, err := unix.Open(h.Source.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: h.Source.Path, Err: err}
	}
	d := &Held{Dir: h, guest: g, file: os.NewFile(uintptr(fd), h.Source.Path), sources: make(map[string]rootfs.Source)}
	st, err := rootfs.Stat(fd)
	if err == nil {
		err = h.Source.Is(rootfs.Identify(&st))
	}
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	return d, nil
}

// refused explains why something could not be made in a directory. Where this
// process may not, a guest may not either: it has the same rights or fewer. But as
// the owner it could change the directory's mode.
func (d *Held) refused(dir int, err error) error {
	if errors.Is(err, unix.EROFS) {
		return ErrUnwritable
	}
	if d.guest.Other || !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return err
	}
	st, serr := rootfs.Stat(dir)
	if serr != nil {
		return serr
	}
	if int(st.Uid) != d.guest.UID {
		return ErrUnwritable
	}
	return fmt.Errorf("%w, though its owner, who can change that, is who guests run as: "+
		"make it writable, or mount it read-only instead (mount)", err)
}

// Hold takes a shared lock on the directory's lock, which it makes if need be. An
// exclusive one is held while somebody cleans up, which takes a moment. Its error
// is ErrUnwritable if no guest can make anything here.
func (d *Held) Hold() error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		err := unix.Mkdirat(int(d.file.Fd()), LockName, 0o1555)
		if err != nil && err != unix.EEXIST {
			return d.refused(int(d.file.Fd()), err)
		}
		made := err == nil
		fd, err := beneath(d.file, LockName, unix.O_RDONLY|unix.O_DIRECTORY)
		if err == unix.ENOENT {
			continue // removed in between
		}
		if err != nil {
			return err
		}
		lock := os.NewFile(uintptr(fd), LockName)
		if made {
			err = setMode(fd, 0o1555) // others' engines open it
		}
		if err == nil {
			err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		}
		if err == nil && d.is(LockName, fd) {
			d.lock = lock
			st, err := rootfs.Stat(fd)
			d.lockID = rootfs.Identify(&st)
			return err
		}
		_ = lock.Close() // nothing was written
		if err != nil && err != unix.EWOULDBLOCK {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is locked by another program", LockName)
		}
	}
}

// setMode sets the mode of what has been made with it, if the umask has changed it: a
// change takes a file system as long as making the file.
func setMode(fd int, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil && st.Mode&0o7777 == mode {
		return nil
	}
	return unix.Fchmod(fd, mode)
}

// is reports whether a name still leads to what has been opened.
func (d *Held) is(name string, fd int) bool {
	there, err := beneath(d.file, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(there)
	a, err := rootfs.Stat(there)
	if err != nil {
		return false
	}
	b, err := rootfs.Stat(fd)
	return err == nil && rootfs.Identify(&a) == rootfs.Identify(&b)
}

// beneath opens a name, following no link.
func beneath(dir *os.File, name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	return unix.Openat2(int(dir.Fd()), name, &how)
}

// parent opens the directory that a name is in. The caller closes it.
func (d *Held) parent(name string) (fd int, base string, err error) {
	fd, err = beneath(d.file, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	return fd, path.Base(name), err
}

// Make makes a placeholder, or takes one that another sandbox has made or a killed
// host has left behind. Its error is ErrUnwritable as that of Hold.
func (d *Held) Make(g Placeholder) (id rootfs.Identity, err error) {
	dir, base, err := d.parent(g.Name)
	if err != nil {
		return id, err
	}
	defer unix.Close(dir)
	if g.File {
		err = makeFile(dir, base, g.Data)
	} else {
		mode := uint32(0o1555)
		if g.Closed {
			mode = 0o1444
		}
		err = unix.Mkdirat(dir, base, mode)
	}
	if err != nil && err != unix.EEXIST {
		return id, d.refused(dir, err)
	}
	fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return id, err
	}
	defer unix.Close(fd)
	st, err := rootfs.Stat(fd)
	if err != nil {
		return id, err
	}
	src := rootfs.Source{
		Path: path.Join(d.Dir.Source.Path, g.Name), Identity: rootfs.Identify(&st), Mode: uint32(st.Mode & 0o7777),
	}
	if kind := st.Mode & unix.S_IFMT; !isPlaceholder(src) || kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return id, rootfs.ErrChanged
	}
	d.sources[g.Name] = src
	return src.Identity, nil
}

// makeFile makes a file appear with its data already in it, where the file system
// can do that: git fails on an empty one.
func makeFile(dir int, name, data string) error {
	fd, err := unix.Openat(dir, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o1444)
	whole := err == nil
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOENT) {
		fd, err = unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o1444)
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if err := setMode(fd, 0o1444); err != nil { // guests read it
		return err
	}
	if _, err := f.WriteString(data); err != nil {
		return err
	}
	if !whole {
		return nil
	}
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
}

// Close removes the placeholders if no other sandbox needs them. Nothing runs in
// the sandbox any more.
func (d *Held) Close() error {
	if d.lock == nil {
		return d.file.Close()
	}
	var errs []error
	if err := unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil && d.is(LockName, int(d.lock.Fd())) {
		for _, g := range d.Placeholders {
			if g.File {
				errs = append(errs, d.removeFile(g))
			}
		}
		for _, name := range slices.Backward(d.Names) { // even those of other sandboxes
			for ; name != "."; name = path.Dir(name) {
				errs = append(errs, d.removeDir(name))
			}
		}
		errs = append(errs, d.removeDir(LockName))
	} else if err != nil && err != unix.EWOULDBLOCK {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, d.lock.Close(), d.file.Close())...)
}

// removeDir removes a placeholder that is a directory. One that something has been
// put into stays.
func (d *Held) removeDir(name string) error {
	dir, base, err := d.parent(name)
	if err != nil {
		return nil // its parent is gone, or was never there
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR ||
		!isPlaceholder(rootfs.Source{Mode: st.Mode}) {
		return nil
	}
	switch err := unix.Unlinkat(dir, base, unix.AT_REMOVEDIR); err {
	case nil, unix.ENOENT, unix.ENOTEMPTY, unix.EEXIST, unix.ENOTDIR:
		return nil
	case unix.EPERM, unix.EACCES:
		return nil // another user's, who has left it behind and will find it
	default:
		return &fs.PathError{Op: "remove", Path: path.Join(d.Dir.Source.Path, name), Err: err}
	}
}

// removeFile removes a placeholder that is a file, if it is still the one that was
// made.
func (d *Held) removeFile(g Placeholder) error {
	dir, base, err := d.parent(g.Name)
	if err != nil {
		return nil // as in removeDir
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	st, err := rootfs.Stat(fd)
	src, ok := d.sources[g.Name]
	if err != nil || !ok || src.Is(rootfs.Identify(&st)) != nil || st.Size != uint64(len(g.Data)) {
		return nil
	}
	if err := unix.Unlinkat(dir, base, 0); err != nil && err != unix.ENOENT {
		return &fs.PathError{Op: "remove", Path: path.Join(d.Dir.Source.Path, g.Name), Err: err}
	}
	return nil
}
