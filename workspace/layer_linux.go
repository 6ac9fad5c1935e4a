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

// layer is one of the two trees. Everything in it is opened by its path beneath
// the root, one descriptor at a time, however deep it lies: a path has at most 4096
// bytes, and what is deeper is an error.
type layer struct {
	root int
	// opened are directories and files of an upper whose owner a guest has kept from
	// reading them, with the modes they are given back; nil for a lower, in which
	// nothing is touched.
	opened map[string]ownMode
}

// ownMode is the mode of an inode; a guest may put another at the path.
type ownMode struct {
	ino  uint64
	mode uint32
}

// beneath refuses every way out that a path can have (openat2(2), Linux 5.6).
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

func (l layer) open(rel string, flags uint64) (int, error) {
	const tries = 20 // each time, a guest at work may have taken the right away again
	for try := 0; ; {
		fd, err := unix.Openat2(l.root, rel, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: beneath})
		switch {
		case err == nil:
			return fd, nil
		case err == unix.EINTR || err == unix.EAGAIN: // a rename came in between
			continue
		case err == unix.EACCES && l.opened != nil && try < tries:
			try++
			l.unlock(rel)
			continue
		}
		return -1, &fs.PathError{Op: "open", Path: rel, Err: err}
	}
}

// unlock lets the owner read what is on the way to a path, and there.
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

// lock gives back all modes, the deepest first.
func (l layer) lock() {
	for _, rel := range slices.Backward(slices.Sorted(maps.Keys(l.opened))) {
		l.chmod(rel, func(st *unix.Stat_t) (uint32, bool) { return l.opened[rel].mode, l.opened[rel].ino == st.Ino })
	}
}

// chmod changes a mode, where there is one and it can be: what could not is found out
// by who then opens it.
func (l layer) chmod(rel string, to func(*unix.Stat_t) (uint32, bool)) {
	fd, err := unix.Openat2(l.root, rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: beneath})
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || kind(st.Mode) != Dir && kind(st.Mode) != File {
		return
	}
	if mode, ok := to(&st); ok {
		// By this name it is what has been opened, and nothing else.
		_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
	}
}

// parent opens the directory that rel is in, to use its name there.
func (l layer) parent(rel string) (fd int, name string, err error) {
	fd, err = l.open(path.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	return fd, path.Base(rel), err
}

// read opens a file or a directory for reading.
func (l layer) read(rel string, flags uint64) (*os.File, error) {
	fd, err := l.open(rel, flags|unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.EACCES) {
		// No device is opened where the guest's are: what stands for something that
		// has been removed is one.
		if st, serr := l.stat(rel); serr == nil && (st == nil || kind(st.Mode) != File && kind(st.Mode) != Dir) {
			err = &fs.PathError{Op: "open", Path: rel, Err: errMeanwhile}
		}
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), rel), nil
}

// stat tells what stands at a path; nil where nothing does.
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

// entries lists a directory with what stands there, sorted.
func (l layer) entries(rel string) (names []string, stats map[string]*unix.Stat_t, opaque bool, err error) {
	d, err := l.read(rel, unix.O_DIRECTORY)
	if err != nil {
		return nil, nil, false, err
	}
	defer d.Close()
	if l.opened != nil {
		l.unlockOne(rel) // it may be listed, but not searched
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

// link is the target of a symbolic link.
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

// errMeanwhile is a guest that changes what is being read.
var errMeanwhile = errors.New("it is being changed")

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

func markOf(st *unix.Stat_t) mark {
	if st == nil {
		return mark{}
	}
	return mark{uint64(st.Dev), st.Ino, st.Ctim.Nano()}
}

// whiteout tells whether an entry of an upper stands for what has been removed.
func whiteout(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 }
