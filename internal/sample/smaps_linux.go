package sample

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// mappedFiles returns how many bytes the processes have mapped of files that files counts.
// It takes some 3 µs for each mapping, so it is used only where it decides whether a limit
// is exceeded, and stops after timeBudget: the rest counts twice.
func (s *Sampler) mappedFiles() (sum uint64, err error) {
	begin := time.Now()
	for _, p := range s.known {
		if p.share.shmem == 0 || time.Since(begin) > timeBudget {
			continue
		}
		b, err := s.readAll(p.mem + "/smaps")
		if err != nil && !isGone(err) {
			return 0, err
		}
		eachMapping(b, func(dev []byte, ino, pss uint64) {
			if s.counts(string(dev), ino) {
				sum += pss
			}
		})
	}
	return sum, nil
}

// counts reports whether files counts a file.
func (s *Sampler) counts(dev string, ino uint64) bool {
	if _, held := s.memfds.files[ino]; held && dev == hexDevice(s.memfds.dev) {
		return true
	}
	for _, m := range s.tmpfs {
		if dev == hexDevice(m.dev) {
			return true
		}
	}
	return false
}

// device formats a device number like mountinfo.
func device(dev uint64) string {
	return strconv.Itoa(int(unix.Major(dev))) + ":" + strconv.Itoa(int(unix.Minor(dev)))
}

// hexDevice formats a device number like smaps.
func hexDevice(dev uint64) string {
	hex := func(n uint32) string {
		if n < 16 {
			return "0" + strconv.FormatUint(uint64(n), 16)
		}
		return strconv.FormatUint(uint64(n), 16)
	}
	return hex(unix.Major(dev)) + ":" + hex(unix.Minor(dev))
}

// mostText bounds how much of a file is read. A process can have 65530 mappings.
const mostText = 64 << 20

// readAll reads a long file of /proc.
func (s *Sampler) readAll(name string) ([]byte, error) {
	fd, err := unix.Openat(s.procFD, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var b []byte
	for len(b) < mostText {
		b = append(b, make([]byte, 64<<10)...)
		n, err := unix.Read(fd, b[len(b)-64<<10:])
		b = b[:len(b)-64<<10+max(n, 0)]
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			break
		}
	}
	return bytes.TrimSpace(b), nil
}
