package sample

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/mountinfo"
)

// tmpfs is a tmpfs that only the sandbox has.
type tmpfs struct {
	fd    int // O_PATH
	point string
	dev   uint64
}

// openTmpfs opens each tmpfs that is writable and not mounted in this process: a tmpfs of
// the host is in both tables. statfs of an overlay reports its upper layer, which is a
// tmpfs unless onDisk lists the mount point.
func (s *Sampler) openTmpfs(dir string, onDisk []string) error {
	own, err := mounts("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	inside, err := mounts(dir + "/mountinfo")
	if err != nil {
		return err
	}
	host := make(map[string]bool)
	for _, m := range own {
		host[m.Device] = true
	}
	for _, m := range inside {
		if m.Type != "tmpfs" && m.Type != "overlay" || !m.Writable || host[m.Device] {
			continue
		}
		host[m.Device] = true // count it once
		if slices.Contains(onDisk, m.Point) {
			continue
		}
		if err := s.openOne(dir+"/root"+m.Point, m.Device); err != nil {
			return err
		}
	}
	return nil
}

// openOne opens a mount point, unless something else is mounted on top.
func (s *Sampler) openOne(path, dev string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // another mount hides it
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err != nil || device(st.Dev) != dev {
		_ = unix.Close(fd) // O_PATH
		return err         // nil if another file system is mounted on top
	}
	s.tmpfs = append(s.tmpfs, tmpfs{fd, path, st.Dev})
	return nil
}

func mounts(file string) ([]mountinfo.Mount, error) {
	text, err := os.ReadFile(file)
	return mountinfo.Parse(string(text)), err
}
