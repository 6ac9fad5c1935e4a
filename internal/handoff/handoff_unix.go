//go:build darwin || linux

package handoff

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// Drain copies what is in a pipe now, without waiting for more. However late its
// turn comes, nothing that the command wrote is lost.
func Drain(w io.Writer, from *os.File) {
	conn, err := from.SyscallConn()
	if err != nil || from.SetReadDeadline(time.Time{}) != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for range 16 { // a pipe holds at most 1 MiB, by default
		n := 0
		closed := conn.Read(func(fd uintptr) bool { n, err = syscall.Read(int(fd), buf); return true })
		if closed != nil || err != nil || n <= 0 {
			return
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
	}
}

// Resize tells a terminal its new size.
func Resize(master *os.File, w box.WindowSize) error {
	conn, err := master.SyscallConn()
	if err != nil {
		return err
	}
	cerr := conn.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
	})
	return errors.Join(cerr, err)
}

// channelFiles are the ends of a socket pair.
func channelFiles(fds [2]int) (ours, theirs *os.File, err error) {
	theirs = os.NewFile(uintptr(fds[1]), "guest's channel")
	// Ours alone: the runtime polls it then, so that Close ends a Read.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[0]), theirs.Close())
	}
	return os.NewFile(uintptr(fds[0]), "broker's channel"), theirs, nil
}
