package sample

import (
	"encoding/binary"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// isGone reports whether an error means that a process has ended or may not be read.
func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) ||
		errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}

func unlessGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

var errFormat = errors.New("not in the format of proc(5)")

func statAt(dir int, name string, buf []byte) (s stat, err error) {
	n, err := readAt(dir, name, buf)
	if err != nil {
		return s, err
	}
	s, ok := parseStat(buf[:n])
	if !ok {
		return s, &fs.PathError{Op: "read", Path: "/proc/" + name, Err: errFormat}
	}
	return s, nil
}

// readAt reads a file of /proc with one call.
func readAt(dir int, name string, buf []byte) (n int, err error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	n, err = unix.Read(fd, buf)
	_ = unix.Close(fd) // nothing was written
	if err != nil {
		return 0, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return n, nil
}

// entries lists a directory of /proc from an offset on until each returns false. The name
// is valid until each returns; next is the offset of the following entry.
func (s *Sampler) entries(dir int, offset int64, each func(name []byte, next int64) bool) error {
	if _, err := unix.Seek(dir, offset, unix.SEEK_SET); err != nil {
		return err
	}
	for {
		n, err := unix.Getdents(dir, s.dirents)
		if err != nil || n == 0 {
			return err
		}
		for b := s.dirents[:n]; len(b) > 19; {
			size := int(binary.NativeEndian.Uint16(b[16:])) // struct linux_dirent64
			if size < 20 || size > len(b) {
				return errFormat
			}
			name := b[19:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			if !each(name, int64(binary.NativeEndian.Uint64(b[8:]))) {
				return nil
			}
			b = b[size:]
		}
	}
}
