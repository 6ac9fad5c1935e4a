//go:build linux && (amd64 || arm64)

package setup

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Sources holds detached copies of host trees, made by a process that may mount on
// the host. Only root makes them this way: its guests run as a user who may be
// unable to walk to the directory they are given. For everyone else the programs
// open the trees in the new user namespace.
type Sources struct{ fds map[string]int }

// OpenSources copies the host trees of a table. It needs CAP_SYS_ADMIN. The caller
// closes the result when the programs that use it have run. Its error is a
// rootfs.ErrChanged if a path was swapped after the table was made. Mapped nodes get
// the ids of idmap.
func OpenSources(table rootfs.Table, idmap *os.File) (*Sources, error) {
	s := &Sources{fds: make(map[string]int)}
	for _, n := range table {
		for _, tree := range n.Trees() {
			err := s.open(tree)
			if err == nil && n.Mapped && tree.Name == n.Path {
				if err = MapIDs(s.fds[tree.Name], idmap); err != nil {
					err = fmt.Errorf("map the ids of %q: %w", tree.Path, err)
				}
			}
			if err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
	}
	return s, nil
}

func (s *Sources) open(n rootfs.Tree) error {
	fd, err := unix.OpenTree(cwd, n.Path, openTreeFlags)
	if err != nil {
		return fmt.Errorf("open %q: open_tree: %w", n.Path, err)
	}
	s.fds[n.Name] = fd
	st, err := rootfs.Stat(fd)
	if err != nil {
		return fmt.Errorf("stat %q: %w", n.Path, err)
	}
	return n.Is(rootfs.Identify(&st))
}

func (s *Sources) args() map[string]launch.Arg {
	m := make(map[string]launch.Arg, len(s.fds))
	for path, fd := range s.fds {
		m[path] = launch.Int(fd)
	}
	return m
}

// Close releases the copies; what was mounted stays. It is safe twice and on nil.
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
