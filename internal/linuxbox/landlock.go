//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/handoff"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/privatedir"
	"github.com/tegmen-dev/tegmen/internal/sample"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/ns"
)

// LandlockMachine starts sandboxes where namespaces are refused: commands are
// confined by Landlock and seccomp alone, in the host's own view of files.
type LandlockMachine struct {
	m     *Machine
	swept sync.Map // users whose leftovers have been removed
}

// Landlock returns the machine for sandboxes without namespaces. It uses what m
// holds, and is closed with it.
func (m *Machine) Landlock() *LandlockMachine { return &LandlockMachine{m: m} }

// Diagnose finds nothing: Machine.Diagnose speaks of Landlock as well.
func (l *LandlockMachine) Diagnose() []box.Finding { return nil }

// Close does nothing.
func (l *LandlockMachine) Close() error { return nil }

// Start makes the sandbox's private directory. There is no process yet.
func (l *LandlockMachine) Start(c *box.Config) (*box.Started, error) {
	begin := time.Now()
	s, err := l.m.spawner(c.IDs)
	if err != nil {
		return nil, err
	}
	if _, done := l.swept.LoadOrStore(c.IDs.HostUID, true); !done {
		privatedir.Sweep(l.m.owner(c))
	}
	dir, err := privatedir.Make(l.m.owner(c))
	if err != nil {
		return nil, err
	}
	image, err := launch.Reaper()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	b := &landlockBox{
		m: l.m, config: withPrivate(c, dir.Path), spawner: s, dir: dir, image: image,
		reapers: make(map[*os.File]struct{}), killed: make(chan struct{}), over: make(chan struct{}),
	}
	return &box.Started{Box: b, Private: dir.Path, Timing: box.Timing{Total: time.Since(begin)}}, nil
}

// withPrivate grants the sandbox its private directory.
func withPrivate(c *box.Config, dir string) *box.Config {
	rules := *c.Landlock
	rules.Rules = append(slices.Clone(rules.Rules), PrivateGrant(dir))
	with := *c
	with.Landlock = &rules
	return &with
}

// PrivateGrant is what commands may do in their sandbox's private directory.
func PrivateGrant(dir string) ns.Grant {
	return ns.Grant{Path: dir, Access: ns.Read | ns.Change | ns.Make}
}

// landlockBox is a sandbox without namespaces: the directory that is its own, and
// the reapers of its commands. A reaper is a command's parent, adopts the orphans
// among its descendants, and can end them all.
type landlockBox struct {
	m        *Machine
	config   *box.Config
	spawner  *launch.Spawner
	dir      *privatedir.Dir
	image    *os.File // launch.Reaper
	sampled  sampled
	activity box.Activity

	mu      sync.Mutex
	ended   bool                  // no command starts any more
	reapers map[*os.File]struct{} // pidfds
	running sync.WaitGroup        // reapers; added to under mu, unless ended
	killed  chan struct{}         // closed with ended
	over    chan struct{}         // closed when nothing is left of it
}

// Kill ends every command's tree: each reaper kills its own.
func (b *landlockBox) Kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		close(b.killed)
	}
	for fd := range b.reapers {
		_ = sendSignal(fd, unix.SIGTERM) // it has ended
	}
}

// Wait returns when the sandbox has been told to end and nothing is left of it.
func (b *landlockBox) Wait() error {
	<-b.killed
	b.running.Wait()
	close(b.over)
	b.sampled.close()
	return errors.Join(b.dir.Close(), b.image.Close())
}

// Held finds nothing: there is no workspace with protected paths.
func (b *landlockBox) Held() ([]box.Held, error) { return nil, nil }

// Terminal opens a pseudo-terminal of the host's.
func (b *landlockBox) Terminal(w box.WindowSize) (master, slave *os.File, err error) {
	return handoff.OpenTerminal(w)
}

// Watch starts the watchdog.
func (b *landlockBox) Watch() <-chan box.Exceeded {
	out := make(chan box.Exceeded)
	go func() {
		defer close(out)
		w := b.config.Watch
		first := func() time.Duration { return sample.Next(sample.Sample{}, limits(w, b.m.host.CPUs)) }
		box.Watchdog(out, b.over, &b.activity, w, first, func() (box.Look, time.Duration) {
			none := func() int64 { return 0 } // System V shared memory is refused
			now, next, _ := b.sampled.look(w, b.m.host.CPUs, none)
			return now, next
		})
	}()
	return out
}

// Usage is what the watchdog has seen.
func (b *landlockBox) Usage() box.Usage { return b.sampled.usage() }

// landlockProcess is a command. Its parent is a reaper, which reports its end.
type landlockProcess struct {
	launched
	box    *landlockBox
	reaper *os.File // pidfd
	status *os.File
}

// Exec starts a command with a reaper above it.
func (b *landlockBox) Exec(r box.Request) (_ box.Process, err error) {
	b.mu.Lock()
	if b.ended {
		b.mu.Unlock()
		return nil, box.ErrClosed
	}
	b.running.Add(1)
	b.mu.Unlock()
	before := b.activity.Enter(b.Usage)
	p, err := b.exec(r)
	if err != nil {
		b.activity.Leave(box.Usage{}, 0)
		b.running.Done()
		return nil, err
	}
	p.before = before
	return p, nil
}

func (b *landlockBox) exec(r box.Request) (*landlockProcess, error) {
	p := &landlockProcess{launched: launched{m: b.m, root: "/"}, box: b}
	return p, p.launch(b.config, b.spawner, r, p.start)
}

// start makes the reaper and the command.
func (p *landlockProcess) start(c setup.Command) error {
	var files [4]*os.File // control read, control write, status read, status write
	closeAll := func() (err error) {
		for _, f := range files {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		return err
	}
	var err error
	for i := 0; i < 4 && err == nil; i += 2 {
		files[i], files[i+1], err = os.Pipe()
	}
	if err != nil {
		return errors.Join(err, closeAll())
	}
	above := setup.LandlockOnly{
		ReaperFD: int(p.box.image.Fd()), ControlFD: int(files[0].Fd()), StatusFD: int(files[3].Fd()),
	}
	p.entry = above.Enter(c)
	reaper, err := p.box.spawner.Start(p.entry.Program, 0)
	runtime.KeepAlive(files)
	p.pid = p.entry.PID.Int()
	if err != nil {
		if p.pid > 0 {
			_ = unix.Kill(p.pid, unix.SIGKILL) // another's child now, if it has not ended
		}
		return errors.Join(err, closeAll())
	}
	fd, err := openPidfd(reaper)
	if err == nil {
		// The reaper waits for this before it reaps the command.
		p.pidfd, err = openPidfd(p.pid)
	}
	if err == nil {
		_, err = files[1].Write(binary.NativeEndian.AppendUint64(nil, uint64(p.pid)))
	}
	if err != nil {
		err = errors.Join(err, closeAll()) // so the reaper ends its tree
		for _, f := range []*os.File{fd, p.pidfd} {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		return errors.Join(err, launch.Reap(reaper))
	}
	p.status, p.reaper = files[2], fd
	p.box.watchReaper(fd, reaper)
	return errors.Join(files[0].Close(), files[1].Close(), files[3].Close())
}

// watchReaper reaps a reaper, which ends with the last process of its tree.
func (b *landlockBox) watchReaper(fd *os.File, pid int) {
	s, err := sample.OpenTree(pid)
	b.sampled.add(s, err)
	b.mu.Lock()
	b.reapers[fd] = struct{}{}
	if b.ended {
		_ = sendSignal(fd, unix.SIGTERM) // Kill has come in between
	}
	b.mu.Unlock()
	go func() {
		defer b.running.Done()
		_, _, _ = waitFor(fd, pid, func() {}) // it has no tracer, and nothing to say
		if s != nil {
			b.sampled.remove(s)
		}
		b.mu.Lock()
		delete(b.reapers, fd)
		b.mu.Unlock()
		_ = fd.Close() // done with
	}()
}

// KillTree has the reaper kill all that is beneath it.
func (p *landlockProcess) KillTree() error { return sendSignal(p.reaper, unix.SIGTERM) }

// Release has nothing to free.
func (p *landlockProcess) Release() error { return nil }

// Wait reads what the reaper reports of the command's end.
func (p *landlockProcess) Wait() (e box.Exit, err error) {
	var usage syscall.Rusage
	report := make([]byte, 8+unsafe.Sizeof(usage))
	_, err = io.ReadFull(p.status, report)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		// Only a reaper that was killed reports nothing; what became of its command
		// nobody knows.
		err = errors.New("the command's reaper was killed from outside")
	}
	err = errors.Join(err, p.status.Close(), p.pidfd.Close())
	if err == nil {
		usage = *(*syscall.Rusage)(unsafe.Pointer(&report[8]))
		e = box.ExitOf(syscall.WaitStatus(binary.NativeEndian.Uint32(report)), usage)
	}
	at := p.box.activity.Now()
	now := p.box.Usage()
	e.Used, e.Refused = now.Since(p.before), p.audit.list()
	e.HostOOM = p.box.sampled.hostOOM()
	if e.Used.By == box.ByWatchdog {
		e.Used.CPU = max(e.Used.CPU, e.User+e.System) // it last looked some time before the end
	}
	p.box.activity.Leave(now, at)
	return e, err
}

// Used is what the sandbox has used since the command was started.
func (p *landlockProcess) Used() box.Usage { return p.box.Usage().Since(p.before) }
