//go:build linux && (amd64 || arm64)

package engine

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// socketPair is the channel between a guest and its broker. A stream socket
// without a name leads only to its peer. What else a guest sends with the bytes,
// descriptors for instance, is dropped by the kernel, as nobody here asks for it.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return channelFiles(fds)
}

// readOnlyText is a file for a guest to read. It is sealed, so that a guest that
// opens it again cannot change what another reads.
func readOnlyText(s string) (*os.File, error) {
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
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
