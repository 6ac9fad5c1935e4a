//go:build linux && (amd64 || arm64)

package ns

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/layout"
)

// Sources holds detached copies of host trees, made by a process that may
// mount on the host. Only root has them made this way: its guests run as a
// user who may not be able to walk to the directory they are given. Everyone
// else's programs open them in the new user namespace.
type Sources struct{ fds map[string]int }

// OpenSources copies the host trees of a table. It needs CAP_SYS_ADMIN. The
// caller closes the result when the programs that use it have run.
func OpenSources(table layout.Table) (*Sources, error) {
	s := &Sources{fds: make(map[string]int)}
	for _, n := range table {
		for _, tree := range n.Trees() {
			if err := s.open(tree); err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
	}
	return s, nil
}

func (s *Sources) open(n layout.Tree) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, n.Path, openTreeFlags)
	if err != nil {
		return fmt.Errorf("open %q: open_tree: %w", n.Path, err)
	}
	s.fds[n.Name] = fd
	st, err := Stat(fd)
	if err != nil {
		return fmt.Errorf("stat %q: %w", n.Path, err)
	}
	return n.Is(Identify(&st))
}

// Identify reads an identity out of what statx(2) returned.
func Identify(st *unix.Statx_t) layout.Identity {
	id := layout.Identity{
		Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino,
		Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR,
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id
}

const (
	statxFlags = unix.AT_EMPTY_PATH | unix.AT_STATX_DONT_SYNC
	statxMask  = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_BTIME
)

// Stat identifies what an open descriptor, an O_PATH one too, leads to. The
// mode, the owner, the size and the number of links are valid in the result.
func Stat(fd int) (st unix.Statx_t, err error) {
	err = unix.Statx(fd, "", statxFlags, statxMask|unix.STATX_MODE|unix.STATX_NLINK|unix.STATX_UID|unix.STATX_GID|unix.STATX_SIZE, &st)
	return st, err
}

func (s *Sources) args() map[string]launch.Arg {
	m := make(map[string]launch.Arg, len(s.fds))
	for path, fd := range s.fds {
		m[path] = launch.Int(fd)
	}
	return m
}

// Close releases the copies; what was mounted stays. A nil Sources has none.
func (s *Sources) Close() error {
	if s == nil {
		return nil
	}
	var errs []error
	for path, fd := range s.fds {
		delete(s.fds, path)
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
