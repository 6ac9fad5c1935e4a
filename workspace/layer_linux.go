package workspace

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// layer is one of the two trees. Every file in it is opened by its path beneath the
// root, so that a deep tree needs no more descriptors than a flat one. Paths have at
// most 4096 bytes; anything deeper is an error.
type layer struct {
	root int // a descriptor that the Overlay's File owns
	// opened holds the original modes of directories and files in an upper layer that
	// the guest had made unreadable for their owner. It is nil for a lower layer, where
	// no mode is changed.
	opened map[string]ownMode
}

// ownMode is the mode of an inode: a guest may put another inode at the path.
type ownMode struct {
	ino  uint64
	mode uint32
}

// beneath makes openat2(2), of Linux 5.6, refuse every path that leads out of the layer.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

func (l layer) open(rel string, flags uint64) (int, error) {
	const tries = 20 // a running guest may remove the permission again each time
	how := &unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: beneath}
	for try := 0; ; {
		fd, err := unix.Openat2(l.root, rel, how)
		switch {
		case err == nil:
			return fd, nil
		case err == unix.EINTR || err == unix.EAGAIN: // EAGAIN: a concurrent rename
			continue
		case err == unix.EACCES && l.opened != nil && try < tries:
			try++
			l.unlock(rel)
			continue
		}
		return -1, &fs.PathError{Op: "open", Path: rel, Err: err}
	}
}

// unlock makes a path and the directories above it readable for their owner.
func (l layer) unlock(rel string) {
	at := "."
	for _, name := range append([]string{"."}, strings.Split(rel, "/")...) {
		at = path.Join(at, name)
		l.unlockOne(at)
	}
}

func (l layer) unlockOne(rel string) {
	want := map[Type]uint32{Dir: 0o500, File: 0o400}
	l.chmod(rel, func(st *unix.Stat_t) (uint32, bool) {
		if need := want[kind(st.Mode)]; st.Mode&need != need {
			if l.opened[rel].ino != st.Ino {
				l.opened[rel] = ownMode{st.Ino, st.Mode & 0o7777}
			}
			return st.Mode&0o777 | 0o700, true
		}
		return 0, false
	})
}

// lock restores the modes that unlock has changed, the deepest first.
func (l layer) lock() {
	for _, rel := range slices.Backward(slices.Sorted(maps.Keys(l.opened))) {
		l.chmod(rel, func(st *unix.Stat_t) (uint32, bool) { return l.opened[rel].mode, l.opened[rel].ino == st.Ino })
	}
}

// chmod changes the mode of a file or directory as to decides. Errors are ignored: the
// next open reports them.
func (l layer) chmod(rel string, to func(*unix.Stat_t) (uint32, bool)) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: beneath}
	fd, err := unix.Openat2(l.root, rel, how)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || kind(st.Mode) != Dir && kind(st.Mode) != File {
		return
	}
	if mode, ok := to(&st); ok {
		// This name refers to the opened file, whatever the guest does to its path.
		_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode) // the next open reports it
	}
}

// parent opens the directory of rel and returns rel's name in it.
func (l layer) parent(rel string) (fd int, name string, err error) {
	fd, err = l.open(path.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	return fd, path.Base(rel), err
}

// read opens a file or a directory for reading.
func (l layer) read(rel string, flags uint64) (*os.File, error) {
	fd, err := l.open(rel, flags|unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.EACCES) {
		// The mount forbids opening devices: the guest has put a whiteout at the path.
		if st, serr := l.stat(rel); serr == nil && (st == nil || kind(st.Mode) != File && kind(st.Mode) != Dir) {
			err = &fs.PathError{Op: "open", Path: rel, Err: errMeanwhile}
		}
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), rel), nil
}

// stat returns the status of a path, or nil if it does not exist.
func (l layer) stat(rel string) (*unix.Stat_t, error) {
	dir, name, err := l.parent(rel)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	return l.statAt(dir, name, rel)
}

func (l layer) statAt(dir int, name, rel string) (*unix.Stat_t, error) {
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err {
	case nil:
		if own := l.opened[rel]; own.ino == st.Ino {
			st.Mode = st.Mode&unix.S_IFMT | own.mode
		}
		return &st, nil
	case unix.ENOENT, unix.ENOTDIR:
		return nil, nil
	default:
		return nil, &fs.PathError{Op: "stat", Path: rel, Err: err}
	}
}

// entries lists the names in a directory, sorted, with their status, and reports whether
// the directory is opaque.
func (l layer) entries(rel string) (names []string, stats map[string]*unix.Stat_t, opaque bool, err error) {
	d, err := l.read(rel, unix.O_DIRECTORY)
	if err != nil {
		return nil, nil, false, err
	}
	defer d.Close()
	if l.opened != nil {
		l.unlockOne(rel) // it may be readable but not searchable
	}
	all, err := d.Readdirnames(-1)
	if err != nil {
		return nil, nil, false, err
	}
	slices.Sort(all)
	stats = make(map[string]*unix.Stat_t, len(all))
	for _, name := range all {
		st, err := l.statAt(int(d.Fd()), name, path.Join(rel, name))
		if err != nil {
			return nil, nil, false, err
		}
		if st != nil {
			names, stats[name] = append(names, name), st
		}
	}
	var value [2]byte
	n, err := unix.Fgetxattr(int(d.Fd()), "user.overlay.opaque", value[:])
	return names, stats, err == nil && n == 1 && value[0] == 'y', nil
}

// link returns the target of a symbolic link.
func (l layer) link(rel string) (string, error) {
	dir, name, err := l.parent(rel)
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: rel, Err: err}
	}
	return string(buf[:n]), nil
}

// file opens a regular file.
func (l layer) file(rel string) (*os.File, *unix.Stat_t, error) {
	f, err := l.read(rel, 0)
	if err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || kind(st.Mode) != File {
		return nil, nil, errors.Join(&fs.PathError{Op: "open", Path: rel, Err: errMeanwhile}, err, f.Close())
	}
	return f, &st, nil
}

// errMeanwhile means that a guest has changed a file while it was read.
var errMeanwhile = errors.New("changed while it was read")

func kind(mode uint32) Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Dir
	case unix.S_IFLNK:
		return Symlink
	case unix.S_IFIFO:
		return FIFO
	case unix.S_IFSOCK:
		return Socket
	}
	return Device
}

func info(st *unix.Stat_t) Info {
	i := Info{Type: kind(st.Mode), Mode: st.Mode & 0o777}
	if i.Type == File || i.Type == Symlink {
		i.Size = st.Size
	}
	return i
}

func stampOf(st *unix.Stat_t) stamp {
	if st == nil {
		return stamp{}
	}
	return stamp{uint64(st.Dev), st.Ino, st.Ctim.Nano()}
}

// whiteout reports whether a file of an upper layer stands for a removed path.
func whiteout(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 }
