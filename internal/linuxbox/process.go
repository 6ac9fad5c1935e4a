//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/handoff"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
)

// launched is a command that has been started, by whichever way.
type launched struct {
	m      *Machine
	name   string
	paths  []string // that are tried, from dir
	dir    string
	root   string // of these paths, as the host sees it
	entry  *setup.Entry
	pid    int
	pidfd  *os.File
	report *os.File // end of file: the command has called execve, or is dead
	begin  time.Time
	before box.Usage // of the sandbox, when the command came in
	audit  *audit    // nil: none
}

// launch has start start a command for a request, and closes what was made for that.
func (p *launched) launch(
	c *box.Config, s *launch.Spawner, r box.Request, start func(setup.Command) error,
) (err error) {
	p.name, p.paths, p.dir, p.begin = r.Argv[0], r.Paths, r.Dir, time.Now()
	cmd := setup.Command{
		Paths: r.Paths, Argv: r.Argv, Env: r.Env, Dir: r.Dir, Umask: c.Umask,
		GateFD: int(p.m.gate.Fd()), Terminal: r.Terminal, Signals: p.m.signals, Keyring: s.Keyring(),
		Rlimits: c.Rlimits, Landlock: c.Landlock,
	}
	if cmd.Filters, err = filters(c, p.m.host.Arch); err != nil {
		return err
	}
	files := slices.Clone(r.Files)
	for _, text := range r.Texts {
		f, err := handoff.Text(text)
		if err != nil {
			return err
		}
		defer f.Close() // only read
		files = append(files, f)
	}
	for i, f := range files {
		if f == nil {
			f = p.m.null
			cmd.Null = append(cmd.Null, i)
		}
		cmd.FDs = append(cmd.FDs, int(f.Fd()))
	}
	var write *os.File
	if p.report, write, err = reportPipe(cmd.Filters.Audit); err != nil {
		return err
	}
	cmd.ReportFD = int(write.Fd())
	err = start(cmd)
	runtime.KeepAlive(files)
	if err = errors.Join(err, write.Close()); err != nil {
		return errors.Join(p.m.explain(err), p.report.Close())
	}
	p.audit = startAudit(c, p.report, p.m.host.Arch)
	return nil
}

// Started waits for the end of what comes before the command's own program. Its
// error is nil if that runs, or has run, and otherwise an ExecError or a StepError.
func (p *launched) Started() (box.Timing, error) {
	p.audit.wait()
	buf := make([]byte, 8)
	n, _ := io.ReadFull(p.report, buf) // nothing: it was executed, or something is in the program
	if err := p.report.Close(); err != nil {
		return box.Timing{}, err
	}
	if n == len(buf) {
		errno := syscall.Errno(binary.NativeEndian.Uint64(buf))
		if errno == unix.EACCES && p.isDirectory() {
			errno = unix.EISDIR
		}
		return box.Timing{}, &box.ExecError{Name: p.name, NotFound: errno == unix.ENOENT, Err: errno}
	}
	if err := p.entry.Program.Err(); errors.Is(err, unix.E2BIG) {
		return box.Timing{}, &box.ExecError{Name: p.name, Err: unix.E2BIG}
	} else if err != nil {
		return box.Timing{}, err
	}
	t := p.m.timing(p.entry.Program, launch.Cycles(), p.begin)
	p.entry = nil // the program's memory is free to go
	return t, nil
}

// Signal sends a signal to the command, or to its process group, which it leads.
func (p *launched) Signal(sig syscall.Signal, group bool) error {
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

// nsProcess is a command in a sandbox with namespaces, a child of this process.
type nsProcess struct {
	launched
	box *nsBox
	tag *tag // of it and its descendants; nil: none
}

// Exec clones a command into the sandbox. It has not called execve yet; see
// Started.
func (b *nsBox) Exec(r box.Request) (box.Process, error) {
	before, err := b.enter()
	if err != nil {
		return nil, err
	}
	p, err := b.exec(r)
	if err != nil {
		b.leave(box.Usage{}, 0)
		if b.dying() && !errors.Is(err, box.ErrClosed) {
			err = errors.Join(box.ErrClosed, err)
		}
		return nil, err
	}
	p.before = before
	return p, nil
}

func (b *nsBox) exec(r box.Request) (*nsProcess, error) {
	p := &nsProcess{launched: launched{m: b.m, root: b.rootDir()}, box: b}
	if err := b.group.lift(); err != nil {
		return nil, err
	}
	defer p.restoreMemoryLimit()
	if err := p.launch(b.config, b.spawner, r, p.start); err != nil {
		return nil, errors.Join(err, p.Release())
	}
	return p, nil
}

// start clones the command.
func (p *nsProcess) start(c setup.Command) error {
	b := p.box
	c.Tagged = b.config.KillAlone
	if b.group != nil {
		c.CgroupFD = int(b.group.Dir().Fd())
		if begun := b.first.begin(); begun != nil {
			c.ShowCgroup = b.config.Table.Cgroup()
			defer func() { begun(p.pid > 0) }()
		}
	}
	err := b.hold(func(initFD int) error {
		c.InitFD = initFD
		p.entry = setup.Enter(c)
		b.m.commands.begin(p.entry)
		defer b.m.commands.begun(p.entry)
		return b.spawner.Run(p.entry.Program, p.entry.Flags)
	})
	if p.entry != nil {
		p.pid = p.entry.PID.Int()
	}
	switch {
	case p.pid <= 0 && err == nil: // the process that should have started it is in the cgroup as well, and was killed
		return fmt.Errorf("its sandbox ran out of memory before: %w", unix.ENOMEM)
	case p.pid <= 0:
		return err
	}
	if c.Tagged {
		// Now, while it cannot have been reaped: later the pid may be another's.
		p.tag = tagOf(p.pid)
	}
	var perr error
	if p.pidfd, perr = openPidfd(p.pid); perr != nil {
		defer b.m.commands.over(p.pid)
		return errors.Join(perr, unix.Kill(p.pid, unix.SIGKILL), launch.Reap(p.pid))
	}
	return nil // what went wrong in the command's own program Started reports
}

// firstCommand is the start of a sandbox's first command. All others wait for it, and no
// longer: a guest can hold starts up, but before it there is none.
type firstCommand struct {
	mu   sync.Mutex
	over atomic.Bool
}

// begin returns nil unless the caller is to start the first command. It then calls begun.
func (f *firstCommand) begin() (begun func(started bool)) {
	if f.over.Load() {
		return nil
	}
	f.mu.Lock()
	if f.over.Load() {
		f.mu.Unlock()
		return nil
	}
	return func(started bool) {
		f.over.Store(started)
		f.mu.Unlock()
	}
}

// restoreMemoryLimit restores memory.max in the background once the command has
// called execve or died: then no process that shares this one's memory is left in
// the cgroup.
func (p *nsProcess) restoreMemoryLimit() {
	if p.box.group == nil {
		return
	}
	if p.pid <= 0 || p.pidfd == nil { // it has not been started
		p.box.group.limit()
		return
	}
	conn, err := p.report.SyscallConn()
	if err != nil {
		p.box.group.limit()
		return
	}
	go func() {
		p.audit.wait()
		_ = conn.Read(func(fd uintptr) bool { // an error is the end of it as well
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, 0) // POLLHUP
			return err != nil && err != unix.EINTR || n == 1
		})
		p.box.group.limit()
	}()
}

// Wait reaps the command when it ends.
func (p *nsProcess) Wait() (box.Exit, error) {
	b := p.box
	status, usage, err := waitFor(p.pidfd, p.pid, b.Kill)
	b.m.commands.over(p.pid)
	at := b.activity.Now()
	now := b.Usage()
	e := box.ExitOf(status, usage)
	e.Used, e.Full, e.Refused = now.Since(p.before), b.full(), p.audit.list()
	if killed := status.Signaled() && status.Signal() == unix.SIGKILL; killed {
		e.HostOOM, e.Ending = b.group == nil && b.sampled.hostOOM(), b.dying()
	}
	if e.Used.By == box.ByWatchdog {
		e.Used.CPU = max(e.Used.CPU, e.User+e.System) // it last looked some time before the end
	}
	b.leave(now, at)
	return e, errors.Join(err, p.pidfd.Close())
}

// KillTree kills the command and all that descends from it, wherever it has gone.
func (p *nsProcess) KillTree() error {
	if p.tag == nil {
		return p.Signal(unix.SIGKILL, false) // it had ended before it could be looked at
	}
	p.tag.kill(p.box)
	return nil
}

// Release frees what a kill would need: none can come any more.
func (p *nsProcess) Release() error {
	if p.tag == nil {
		return nil
	}
	return p.tag.uts.Close()
}

// Used is what the sandbox has used since the command was started.
func (p *nsProcess) Used() box.Usage { return p.box.Usage().Since(p.before) }
