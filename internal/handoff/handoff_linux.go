package handoff

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// Channel makes the socket pair between a guest and its broker. A stream socket
// without a name leads only to its peer. The kernel drops whatever else a guest
// sends with the bytes, such as descriptors, since nobody here asks for it.
func Channel() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return channelFiles(fds)
}

// Text makes a file for a guest to read. It is sealed, so that a guest that opens it
// again cannot change what another reads.
func Text(s string) (*os.File, error) {
	fd, err := unix.MemfdCreate("tegmen-text", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // MFD_NOEXEC_SEAL is 6.3
		fd, err = unix.MemfdCreate("tegmen-text", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "text")
	if _, err = f.WriteString(s); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err == nil {
		const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isUnixStream reports whether a socket is of the one kind that leads only to its
// peer, and has one: a guest can reconnect a TCP socket, address a datagram to anyone,
// and connect an unconnected socket in the network namespace that it was made in: to
// an abstract socket of the host.
func isUnixStream(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	domain, kind := 0, 0
	cerr := conn.Control(func(fd uintptr) {
		if domain, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil {
			kind, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
		}
		if err == nil {
			_, err = unix.Getpeername(int(fd)) // fails for a socket that listens, or that could still connect
		}
	})
	return cerr == nil && err == nil && domain == unix.AF_UNIX && kind == unix.SOCK_STREAM
}

// OpenTerminal opens a pseudo-terminal of the host's.
func OpenTerminal(w box.WindowSize) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return TerminalOf(fd, w)
}

// TerminalOf returns both ends of the pseudo-terminal whose master is fd.
func TerminalOf(fd int, w box.WindowSize) (master, slave *os.File, err error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	if err := Resize(master, w); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	// TIOCSPTLCK 0 unlocks; TIOCGPTPEER (Linux 4.13) opens the other end
	// without a path, which would have to be resolved inside.
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, nil, errors.Join(errno, master.Close())
	}
	return master, os.NewFile(peer, "tty"), nil
}
