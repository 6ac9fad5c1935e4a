//go:build linux && (amd64 || arm64)

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
)

// linuxProcess is a command in a sandbox. It is a child of this process.
type linuxProcess struct {
	box    *linuxBox
	name   string
	entry  *setup.Entry
	pid    int
	pidfd  *os.File
	report *os.File // end of file: the command has called execve, or is dead
	begin  time.Time
	mark   *mark  // of its descendants; nil when nothing is
	audit  *audit // nil: none

	reaper, status *os.File // without namespaces: its parent, and what that reports
}

// exec clones a command into the sandbox. It has not called execve yet; see
// started.
func (b *linuxBox) exec(r execRequest) (process, error) {
	p := &linuxProcess{box: b, name: r.argv[0], begin: time.Now()}
	c := setup.Command{
		Paths: r.paths, Argv: r.argv, Env: r.env, Dir: r.dir, Umask: umask,
		GateFD: int(b.m.gate.Fd()), Terminal: r.terminal,
		Tagged: r.marked, Signals: b.m.signals, Keyring: b.spawner.Keyring(), Rlimits: r.plan.nsRlimits(),
		Landlock: r.plan.landlock.rules,
	}
	var err error
	if c.Filters, err = r.plan.filters(b.m.host.Arch); err != nil {
		return nil, err
	}
	for _, f := range r.files {
		if f == nil {
			f = b.m.null
		}
		c.FDs = append(c.FDs, int(f.Fd()))
	}
	read, write, err := reportPipe(c.Filters.Audit)
	if err != nil {
		return nil, err
	}
	p.report, c.ReportFD = read, int(write.Fd())
	if err := b.group.lift(); err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	defer p.settle()
	if b.group != nil {
		c.CgroupFD = int(b.group.Dir().Fd())
	}
	if b.bare != nil {
		err = b.bare.exec(b, c, p)
	} else {
		err = b.hold(func(initFD int) error {
			c.InitFD = initFD
			p.entry = setup.Enter(c)
			b.m.commands.begin(p.entry)
			defer b.m.commands.begun(p.entry)
			return b.spawner.Run(p.entry.Program, p.entry.Flags)
		})
	}
	runtime.KeepAlive(r.files)
	err = errors.Join(err, write.Close())
	if p.entry != nil {
		p.pid = p.entry.PID.Int()
	}
	if p.pid <= 0 && err == nil { // what should have started it is in the cgroup, too, and was killed
		err = fmt.Errorf("its sandbox ran out of memory before: %w", unix.ENOMEM)
	}
	if p.pid <= 0 || b.bare != nil && err != nil {
		return nil, errors.Join(b.m.explain(err), read.Close())
	}
	if b.bare != nil {
		return p.begun(c, r), nil
	}
	if r.marked {
		// Now, while it cannot have been reaped: later the pid may be another's.
		p.mark = markOf(p.pid)
	}
	if p.pidfd, err = pidfdOpen(p.pid); err != nil {
		defer b.m.commands.over(p.pid)
		return nil, errors.Join(err, unix.Kill(p.pid, unix.SIGKILL), launch.Reap(p.pid), read.Close(), p.release())
	}
	return p.begun(c, r), nil
}

// begun has what a command is refused be listed.
func (p *linuxProcess) begun(c setup.Command, r execRequest) *linuxProcess {
	if c.Filters.Audit {
		p.audit = startAudit(p.report, r.plan.filter, p.box.m.host.Arch)
	}
	return p
}

// settle has the limit to memory hold again when nothing that executes the
// program is left, without that being waited for.
func (p *linuxProcess) settle() {
	if p.box.group == nil {
		return
	}
	conn, err := p.report.SyscallConn()
	if err != nil { // closed: it has not been started
		p.box.group.limit()
		return
	}
	go func() {
		p.audit.wait()
		_ = conn.Read(func(fd uintptr) bool { // an error is the end of it, too
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, 0) // POLLHUP
			return err != nil && err != unix.EINTR || n == 1
		})
		p.box.group.limit()
	}()
}

// hold calls f with the descriptor of pid 1, which stays what it is meanwhile:
// were it closed, its number could become another sandbox's.
func (b *linuxBox) hold(f func(initFD int) error) error {
	conn, err := b.pidfd.SyscallConn()
	if err != nil {
		return ErrClosed
	}
	if conn.Control(func(fd uintptr) { err = f(int(fd)) }) != nil {
		return ErrClosed
	}
	return err
}

// started returns when the command has called execve: nil, or why it could not,
// in which case it has been reaped. A command that was killed before that has
// started, as far as anyone can tell.
//
// A guest can hold it up by stopping the command, so the caller has a kill
// pending for the deadline.
func (p *linuxProcess) started() error {
	err := p.setupError()
	if err != nil {
		_, _, werr := p.wait()
		err = errors.Join(err, werr)
	}
	return err
}

// setupError waits for the end of what comes before the command's own program.
// It returns nil when that runs, or has run, and otherwise what went wrong: an
// ExecError or a StepError.
func (p *linuxProcess) setupError() error {
	p.audit.wait()
	buf := make([]byte, 8)
	n, _ := io.ReadFull(p.report, buf) // nothing: it was executed, or something is in the program
	if err := p.report.Close(); err != nil {
		return err
	}
	if n == len(buf) {
		errno := syscall.Errno(binary.NativeEndian.Uint64(buf))
		return &ExecError{Name: p.name, NotFound: errno == unix.ENOENT, Err: errno}
	}
	err := p.entry.Program.Err()
	if errors.Is(err, unix.E2BIG) {
		return &ExecError{Name: p.name, Err: unix.E2BIG}
	}
	return err
}

func (p *linuxProcess) timing() Timing {
	t := p.box.m.timing(p.entry.Program, launch.Cycles(), p.begin)
	p.entry = nil // the program's memory is free to go
	return t
}

// wait reaps the command when it ends.
func (p *linuxProcess) wait() (syscall.WaitStatus, rusage, error) {
	if p.status != nil {
		return p.waitBare()
	}
	status, usage, err := waitFor(p.pidfd, p.pid, p.box.kill)
	p.box.m.commands.over(p.pid)
	return status, rusageOf(usage), errors.Join(err, p.pidfd.Close())
}

// release frees what a kill would need: none can come any more.
func (p *linuxProcess) release() error {
	if p.mark == nil {
		return nil
	}
	return p.mark.uts.Close()
}

// signal sends one to the command, or to its process group, which it leads.
func (p *linuxProcess) signal(sig syscall.Signal, group bool) error {
	if !group {
		return sendSignal(p.pidfd, sig)
	}
	err := sendSignalTo(p.pidfd, sig, unix.PIDFD_SIGNAL_PROCESS_GROUP) // Linux 6.9
	if errors.Is(err, unix.EINVAL) {
		if err = sendSignal(p.pidfd, 0); err == nil { // so the number is its own
			err = unix.Kill(-p.pid, sig)
		}
	}
	return err
}

// terminal opens a pseudo-terminal of the sandbox: the master, and the end
// that the command gets.
func (b *linuxBox) terminal(w WindowSize) (master, slave *os.File, err error) {
	if b.bare != nil {
		return openTerminal(w)
	}
	var fd int
	err = b.hold(func(initFD int) error {
		p, flags, slot := setup.Terminal(initFD)
		err := b.spawner.Run(p, flags)
		fd = slot.Int()
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return terminalOf(fd, w)
}

// openTerminal opens one of the host's.
func openTerminal(w WindowSize) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return terminalOf(fd, w)
}

// terminalOf makes the most of the descriptor of a /dev/ptmx.
func terminalOf(fd int, w WindowSize) (master, slave *os.File, err error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	if err := resize(master, w); err != nil {
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

// maxRSSUnit is what ru_maxrss counts (getrusage(2)).
const maxRSSUnit = KiB

// isUnixStream tells whether a socket is of the one kind that leads only to its
// peer: a guest can reconnect a TCP socket, and address a datagram to anyone.
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
	})
	return cerr == nil && err == nil && domain == unix.AF_UNIX && kind == unix.SOCK_STREAM
}
