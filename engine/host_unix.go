//go:build darwin || (linux && (amd64 || arm64))

package engine

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readSmall reads at most a page of a regular file.
func readSmall(path string) ([]byte, error) {
	// A guest may have put anything there: a pipe, opened so, does not block.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	return io.ReadAll(io.LimitReader(f, 4096))
}

func resize(master *os.File, w WindowSize) error {
	conn, err := master.SyscallConn()
	if err != nil {
		return err
	}
	cerr := conn.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
	})
	return errors.Join(cerr, err)
}

func rusageOf(u syscall.Rusage) rusage {
	return rusage{time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), Bytes(u.Maxrss) * maxRSSUnit}
}

// The signals of the kernel's for resource limits.
const (
	sigXCPU = syscall.SIGXCPU
	sigXFSZ = syscall.SIGXFSZ
)

func readFD(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

// channelFiles are the ends of a socket pair.
func channelFiles(fds [2]int) (ours, theirs *os.File, err error) {
	theirs = os.NewFile(uintptr(fds[1]), "guest's channel")
	// Ours alone: the runtime polls it then, so that Close ends a Read.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[0]), theirs.Close())
	}
	return os.NewFile(uintptr(fds[0]), "broker's channel"), theirs, nil
}
