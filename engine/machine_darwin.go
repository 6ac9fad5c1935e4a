package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// sandboxExec is the only one that is asked: what stands in PATH is anyone's.
const sandboxExec = "/usr/bin/sandbox-exec"

// ProbeHost finds out what this machine and account can do. It starts nothing
// and changes nothing.
func ProbeHost() (Host, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return Host{}, &Error{Op: "probe host", Err: err}
	}
	h := Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: unix.ByteSliceToString(uts.Release[:]),
		UID: os.Geteuid(), GID: os.Getegid(), CPUs: runtime.NumCPU(),
		Hard: make(map[string]uint64), Lookup: lookup, ReadFile: readSmall,
		TrySeatbelt: func() error { return trySandboxExec(sandboxExec) }, SandboxExec: sandboxExec,
	}
	h.Home, _ = os.UserHomeDir() // without one there are no secrets in it
	if memory, err := unix.SysctlUint64("hw.memsize"); err == nil {
		h.Memory = Bytes(memory)
	}
	for name, resource := range map[string]int{"core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "fsize": unix.RLIMIT_FSIZE, "nofile": unix.RLIMIT_NOFILE} {
		var lim unix.Rlimit
		if err := unix.Getrlimit(resource, &lim); err != nil {
			return Host{}, &Error{Op: "probe host", Err: err}
		}
		h.Hard[name] = lim.Max
	}
	return h, nil
}

// Calls lists the command line that starts a command, "/PROGRAM", and the profile
// that confines it.
func (p *Plan) Calls() string { return p.commandLine() }

func openMachine(h Host, _ Options) (machine, error) { return openPosix(h) }

func (h *Host) scoped() (Host, error) {
	return *h, &UnsupportedError{Feature: "a systemd scope on " + h.OS}
}

// lookup follows symbolic links: /tmp is one, and Seatbelt knows files by where
// they really are.
func lookup(path string) (rootfs.Source, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Lstat(real, &st); err != nil {
		return rootfs.Source{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG && kind != unix.S_IFCHR {
		return rootfs.Source{}, invalid("find %s: neither a file nor a directory", path)
	}
	return rootfs.Source{
		Path:     real,
		Identity: rootfs.Identity{Dev: uint64(st.Dev), Ino: st.Ino, Born: st.Btim.Nano(), Dir: kind == unix.S_IFDIR},
		UID:      int(st.Uid), GID: int(st.Gid), Mode: uint32(st.Mode & 0o7777),
	}, nil
}

// socketPair is the channel between a guest and its broker. A stream socket
// without a name leads only to its peer.
func socketPair() (ours, theirs *os.File, err error) {
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

// readOnlyText is a file for a guest to read, without a name: the descriptor that
// the guest gets cannot be written to, and opened again it is the same one.
func readOnlyText(s string) (*os.File, error) {
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

// isUnixStream tells whether a socket is of the one kind that leads only to its
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
	})
	return cerr == nil && err == nil && unixDomain && kind == unix.SOCK_STREAM
}

// removeTree removes a directory that a guest has filled, when nothing of the
// guest is left. A guest can have closed directories to their owner, and have
// made files immutable (chflags(2)).
func removeTree(dir string) error {
	open := func(path string, d fs.DirEntry, err error) error {
		if d == nil || d.Type()&fs.ModeSymlink != 0 {
			return nil // which is not to be followed, and can be removed
		}
		_ = unix.Chflags(path, 0) // where it cannot be done, removing says why
		if d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	}
	for {
		before := 0
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			before++
			return open(path, d, err)
		})
		err := os.RemoveAll(dir)
		if err == nil {
			return nil
		}
		after := 0
		_ = filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { after++; return nil })
		if after >= before { // no directory has become readable, and no file has gone
			return err
		}
	}
}

// openOwn opens a directory, also one that a guest has closed to its owner. The
// last part of the path may not be a link: others could have put it there.
func openOwn(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) && unix.Fchmodat(unix.AT_FDCWD, dir, 0o700, unix.AT_SYMLINK_NOFOLLOW) == nil {
		fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}
