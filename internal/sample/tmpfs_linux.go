package sample

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
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
	host := make(map[string]bool)
	if err := mounts("/proc/self/mountinfo", func(m mount) error {
		host[string(m.dev)] = true
		return nil
	}); err != nil {
		return err
	}
	return mounts(dir+"/mountinfo", func(m mount) error {
		kind := string(m.kind)
		if kind != "tmpfs" && kind != "overlay" || !m.writable || host[string(m.dev)] {
			return nil
		}
		host[string(m.dev)] = true // count it once
		point := unescape(string(m.point))
		if slices.Contains(onDisk, point) {
			return nil
		}
		path := dir + "/root" + point
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			return nil // another mount hides it
		}
		if err != nil {
			return &fs.PathError{Op: "open", Path: path, Err: err}
		}
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		if err != nil || device(st.Dev) != string(m.dev) {
			_ = unix.Close(fd) // O_PATH
			return err         // nil if another file system is mounted on top
		}
		s.tmpfs = append(s.tmpfs, tmpfs{fd, path, st.Dev})
		return nil
	})
}

func mounts(file string, each func(mount) error) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if m, ok := parseMount(lines.Bytes()); ok {
			if err := each(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// unescape decodes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
