//go:build linux && (amd64 || arm64)

package engine

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

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// ghosts are those of one sandbox. They are there before it is made, since it
// mounts on them, and removed when nothing in it can run any more: to remove
// what is mounted on takes the mount away, in every namespace.
type ghosts struct {
	dirs    []*heldDir
	janitor *setup.Janitor // sees to them when this process is killed
}

// heldDir is a directory with ghosts in it.
type heldDir struct {
	ghostDir
	file, lock *os.File // lock is nil where no ghosts can be made
	lockID     rootfs.Identity
	become     bool                     // guests may be another user than this process
	guest      int                      // who they are
	sources    map[string]rootfs.Source // the ghosts that have been made
}

// startGuarded makes the plan's ghosts and the sandbox.
func (m *linuxMachine) startGuarded(p *Plan) (*linuxBox, error) {
	begin := time.Now()
	g, err := m.makeGhosts(p)
	if err != nil {
		return nil, err
	}
	with := *p
	with.table = p.withGhosts(g.source)
	b, err := m.startOn(&with)
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	b.ghosts, b.took.Total = g, time.Since(begin)
	if g.janitor != nil {
		g.janitor.Init.Set(b.pid)
	}
	return b, nil
}

func (m *linuxMachine) makeGhosts(p *Plan) (g *ghosts, err error) {
	g = new(ghosts)
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	var ghostDirs []setup.PlaceholderDir
	for _, h := range p.ghostDirs {
		d, err := openGhostDir(h)
		if err != nil {
			return g, err
		}
		d.become, d.guest = m.host.Become, p.ids.hostUID
		g.dirs = append(g.dirs, d)
		if err := d.hold(); err != nil && err != errUnwritable {
			return g, fmt.Errorf("protect %s: %w", path.Join(h.dir.Path, ghostLock), err)
		} else if err == nil {
			ghostDirs = append(ghostDirs, d.forJanitor())
		}
	}
	if len(ghostDirs) == 0 {
		return g, nil
	}
	s, err := m.spawner(p.ids)
	if err != nil {
		return g, err
	}
	// Before there is anything to remove: this process can be killed any time.
	g.janitor = setup.NewJanitor(int(m.lifeline.Fd()), ghostDirs)
	if err := s.Run(g.janitor.Program, 0); err != nil {
		return g, err
	}
	n := 0
	for _, d := range g.dirs {
		if d.lock == nil {
			continue
		}
		for i, ghost := range d.ghosts {
			id, err := d.make(ghost.guardedName)
			if err == nil {
				g.janitor.Created(n, i, id)
			} else if err != errUnwritable {
				return g, fmt.Errorf("protect %s: %w", path.Join(d.dir.Path, ghost.name), err)
			}
		}
		n++
	}
	return g, nil
}

func (d *heldDir) forJanitor() setup.PlaceholderDir {
	h := setup.PlaceholderDir{DirFD: int(d.file.Fd()), LockFD: int(d.lock.Fd()), Lock: ghostLock, LockID: d.lockID}
	for _, g := range d.ghosts {
		h.Placeholders = append(h.Placeholders, setup.Placeholder{Name: g.name, File: g.file, Size: len(g.data)})
	}
	return h
}

// source is what stands for a ghost.
func (g *ghosts) source(h *ghostDir, name ghost) (rootfs.Source, bool) {
	for _, d := range g.dirs {
		if d.dir.Path == h.dir.Path {
			src, ok := d.sources[name.name]
			return src, ok
		}
	}
	return rootfs.Source{}, false
}

// close removes the ghosts. Nothing runs in the sandbox any more.
func (g *ghosts) close() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, d := range g.dirs {
		errs = append(errs, d.close())
	}
	// Last, so that it does what this process, killed, could not.
	if g.janitor != nil && g.janitor.PID.Int() > 0 {
		pid := g.janitor.PID.Int() // a child that has not been waited for: nobody else's
		errs = append(errs, unix.Kill(pid, unix.SIGKILL), launch.Reap(pid))
	}
	return errors.Join(errs...)
}

// openGhostDir opens the directory that the plan means.
func openGhostDir(h ghostDir) (*heldDir, error) {
	fd, err := unix.Open(h.dir.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: h.dir.Path, Err: err}
	}
	d := &heldDir{ghostDir: h, file: os.NewFile(uintptr(fd), h.dir.Path), sources: make(map[string]rootfs.Source)}
	st, err := rootfs.Stat(fd)
	if err == nil {
		err = h.dir.Is(rootfs.Identify(&st))
	}
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	return d, nil
}

// errUnwritable says that no guest can make anything in a directory, so that
// nothing need stand in its way.
var errUnwritable = errors.New("not writable")

// refused looks at why something could not be made in a directory. Where this
// process may not, a guest may not either: it has the rights of this process,
// or fewer. But as the owner it could change the directory's mode.
func (d *heldDir) refused(dir int, err error) error {
	if errors.Is(err, unix.EROFS) {
		return errUnwritable
	}
	if d.become || !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return err
	}
	st, serr := rootfs.Stat(dir)
	if serr != nil {
		return serr
	}
	if int(st.Uid) != d.guest {
		return errUnwritable
	}
	return fmt.Errorf("%w, though its owner, who can change that, is who guests run as: make it writable, or mount it read-only instead (mount)", err)
}

// hold takes a shared lock on the directory's lock, which it makes if need be.
// An exclusive one is held by who cleans up, which takes a moment.
func (d *heldDir) hold() error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		err := unix.Mkdirat(int(d.file.Fd()), ghostLock, 0o1555)
		if err != nil && err != unix.EEXIST {
			return d.refused(int(d.file.Fd()), err)
		}
		made := err == nil
		fd, err := beneath(d.file, ghostLock, unix.O_RDONLY|unix.O_DIRECTORY)
		if err == unix.ENOENT {
			continue // removed in between
		}
		if err != nil {
			return err
		}
		lock := os.NewFile(uintptr(fd), ghostLock)
		if made {
			err = unix.Fchmod(fd, 0o1555) // whatever the umask: others' engines open it
		}
		if err == nil {
			err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		}
		if err == nil && d.is(ghostLock, fd) {
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
			return fmt.Errorf("%s is locked by another program", ghostLock)
		}
	}
}

// is tells whether a name still leads to what has been opened.
func (d *heldDir) is(name string, fd int) bool {
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

// beneath opens a name, on the way to which there is no link.
func beneath(dir *os.File, name string, flags uint64) (int, error) {
	return unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}

// parent opens the directory that a name is in. The caller closes it.
func (d *heldDir) parent(name string) (fd int, base string, err error) {
	fd, err = beneath(d.file, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	return fd, path.Base(name), err
}

// make makes a ghost, or takes one that another sandbox has made or a killed
// host has left behind.
func (d *heldDir) make(g guardedName) (id rootfs.Identity, err error) {
	dir, base, err := d.parent(g.name)
	if err != nil {
		return id, err
	}
	defer unix.Close(dir)
	if g.file {
		err = makeGhostFile(dir, base, g.data)
	} else {
		mode := uint32(0o1555)
		if g.closed {
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
	src := rootfs.Source{Path: path.Join(d.dir.Path, g.name), Identity: rootfs.Identify(&st), Mode: uint32(st.Mode & 0o7777)}
	if kind := st.Mode & unix.S_IFMT; !isGhost(src) || kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return id, rootfs.ErrChanged
	}
	d.sources[g.name] = src
	return src.Identity, nil
}

// makeGhostFile makes the file appear with what is in it, where the file system
// can do that: git does not go on when what it reads is empty.
func makeGhostFile(dir int, name, data string) error {
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
	if err := unix.Fchmod(fd, 0o1444); err != nil { // whatever the umask: guests read it
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

// close removes the ghosts if no other sandbox needs them.
func (d *heldDir) close() error {
	if d.lock == nil {
		return d.file.Close()
	}
	var errs []error
	if err := unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil && d.is(ghostLock, int(d.lock.Fd())) {
		for _, g := range d.ghosts {
			if g.file {
				errs = append(errs, d.removeFile(g))
			}
		}
		for _, name := range slices.Backward(d.names) { // of other sandboxes, too
			for ; name != "."; name = path.Dir(name) {
				errs = append(errs, d.removeDir(name))
			}
		}
		errs = append(errs, d.removeDir(ghostLock))
	} else if err != nil && err != unix.EWOULDBLOCK {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, d.lock.Close(), d.file.Close())...)
}

// removeDir removes a ghost that is a directory. One that something has been
// put into stays.
func (d *heldDir) removeDir(name string) error {
	dir, base, err := d.parent(name)
	if err != nil {
		return nil // its parent is gone, or was never there
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || !isGhost(rootfs.Source{Mode: st.Mode}) {
		return nil
	}
	switch err := unix.Unlinkat(dir, base, unix.AT_REMOVEDIR); err {
	case nil, unix.ENOENT, unix.ENOTEMPTY, unix.EEXIST, unix.ENOTDIR:
		return nil
	case unix.EPERM, unix.EACCES:
		return nil // another user's, who has left it behind and will find it
	default:
		return &fs.PathError{Op: "remove", Path: path.Join(d.dir.Path, name), Err: err}
	}
}

// removeFile removes a ghost that is a file, and still the one that was made.
func (d *heldDir) removeFile(g ghost) error {
	dir, base, err := d.parent(g.name)
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
	if src, ok := d.sources[g.name]; err != nil || !ok || src.Is(rootfs.Identify(&st)) != nil || st.Size != uint64(len(g.data)) {
		return nil
	}
	if err := unix.Unlinkat(dir, base, 0); err != nil && err != unix.ENOENT {
		return &fs.PathError{Op: "remove", Path: path.Join(d.dir.Path, g.name), Err: err}
	}
	return nil
}
