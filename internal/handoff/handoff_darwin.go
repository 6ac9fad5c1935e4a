package handoff

import (
	"errors"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// Channel makes the socket pair between a guest and its broker. A stream socket
// without a name leads only to its peer.
func Channel() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	return channelFiles(fds)
}

// Text is a file for a guest to read, without a name: the descriptor that
// the guest gets cannot be written to, and opened again it is the same one.
func Text(s string) (*os.File, error) {
	w, err := os.CreateTemp("", "tegmen-text-")
	if err != nil {
		return nil, err
	}
	_, err = w.WriteString(s)
	f, oerr := os.Open(w.Name())
	if err = errors.Join(err, oerr, os.Remove(w.Name()), w.Close()); err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return f, nil
}

// isUnixStream reports whether a socket is of the one kind that leads only to its
// peer: a guest can reconnect a TCP socket, and address a datagram to anyone.
func isUnixStream(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	unixDomain, kind := false, 0
	cerr := conn.Control(func(fd uintptr) {
		var name unix.Sockaddr
		if name, err = unix.Getsockname(int(fd)); err == nil {
			_, unixDomain = name.(*unix.SockaddrUnix)
			kind, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
		}
		if err == nil {
			_, err = unix.Getpeername(int(fd)) // fails for a socket that listens, or that could still connect
		}
	})
	return cerr == nil && err == nil && unixDomain && kind == unix.SOCK_STREAM
}

// OpenTerminal opens a pseudo-terminal of the host's.
func OpenTerminal(w box.WindowSize) (master, slave *os.File, err error) {
	master, slave, err = pty.Open()
	if err != nil {
		return nil, nil, err
	}
	if err := Resize(master, w); err != nil {
		return nil, nil, errors.Join(err, master.Close(), slave.Close())
	}
	return master, slave, nil
}
