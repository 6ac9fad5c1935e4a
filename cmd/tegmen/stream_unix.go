//go:build linux || darwin

package main

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// openStream opens what stands at name if it is not a file, for writing; nil if it is one,
// or nothing.
func openStream(name string) (*os.File, error) {
	if fd, ok := descriptorOf(name); ok {
		return inherited(fd)
	}
	st, err := os.Lstat(name)
	flags := unix.O_NOFOLLOW // a program that can write there could put a link in its place
	if err == nil && st.Mode()&fs.ModeSymlink != 0 && rootfs.Within("/dev", name) && !rootfs.Within("/dev/shm", name) {
		st, err = os.Stat(name) // only root makes links there
		flags = 0
	}
	if err != nil || st.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) == 0 {
		return nil, nil // the next step reports an error
	}
	f, err := os.OpenFile(name, unix.O_WRONLY|unix.O_NONBLOCK|flags, 0)
	if errors.Is(err, unix.ENXIO) && st.Mode()&fs.ModeNamedPipe != 0 {
		return nil, errors.New("nobody reads from this FIFO")
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		return nil, at.Err
	}
	return f, err
}

// descriptorOf is the descriptor of this process that a path stands for.
func descriptorOf(name string) (fd int, ok bool) {
	switch name {
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if number, in := strings.CutPrefix(name, dir); in {
			fd, err := strconv.Atoi(number)
			return fd, err == nil && fd >= 0
		}
	}
	return 0, false
}

// inherited duplicates a descriptor that tegmen was started with; its own are closed at
// execve. To open it by its name would truncate a file, or write over its start.
func inherited(fd int) (*os.File, error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err == nil && flags&unix.FD_CLOEXEC != 0 {
		err = unix.EBADF
	}
	if err != nil {
		return nil, err
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(own), "/dev/fd/"+strconv.Itoa(fd)), nil
}
