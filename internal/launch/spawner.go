//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Identity is the user that a spawner's children run as on the host.
type Identity struct {
	UID, GID int // 0 is root
}

// A Spawner starts processes. It has its own thread, which lives until Close:
// PR_SET_PDEATHSIG refers to the thread that made the child, not to its process.
// Its methods are safe for concurrent use.
type Spawner struct {
	runsHere   bool // Run uses the calling thread: children run as the caller
	threadless bool // so do all other methods
	keyring    string
	id         *Identity
	idle       chan *Spawner // for programs that a guest may hold up; nil: this is one of these
	requests   chan *request
	quit       chan struct{} // closed by Close
	stopped    chan struct{} // closed when the thread has ended
	close      sync.Once
}

// NewCallerSpawner returns a spawner without its own thread: the calling threads
// start all processes, as the caller. A process that asks for a signal at its
// parent's death gets it when the thread that called Start ends.
//
// The calling thread's session keyring is replaced by an empty one.
func NewCallerSpawner() (*Spawner, error) {
	s := &Spawner{runsHere: true, threadless: true, quit: make(chan struct{}), stopped: make(chan struct{})}
	close(s.stopped)
	var err error
	s.keyring, err = joinKeyring()
	return s, err
}

// Keyring returns the name of an empty session keyring, or "" without keyrings.
// Programs that Run executes must join it before they enter a user namespace.
func (s *Spawner) Keyring() string { return s.keyring }

// NewSpawner starts the thread. With a nil identity its children run as the caller.
// Otherwise the thread, and it alone, becomes that user; it keeps its capabilities,
// which needs CAP_SETUID, CAP_SETGID and CAP_SETPCAP.
//
// The change is made here, once, and not in the children: a change of uid clears the
// dumpable flag of the memory that a child shares with the host process. The flag is
// restored before anything is started.
func NewSpawner(id *Identity) (*Spawner, error) {
	s := &Spawner{runsHere: id == nil, id: id, idle: make(chan *Spawner, keepIdle)}
	return s, s.startThread()
}

func (s *Spawner) startThread() error {
	s.requests, s.quit, s.stopped = make(chan *request), make(chan struct{}), make(chan struct{})
	ready := make(chan error)
	go s.loop(s.id, ready)
	return <-ready
}

func (s *Spawner) loop(id *Identity, ready chan<- error) {
	runtime.LockOSThread()
	if id != nil && unix.Gettid() == unix.Getpid() {
		// Others see the main thread's user as that of the process: it decides who
		// may send it signals and who owns its /proc. So another thread is found,
		// while this one is kept busy.
		elsewhere := make(chan error)
		go s.loop(id, elsewhere)
		ready <- <-elsewhere
		runtime.UnlockOSThread()
		return
	}
	// Never unlocked from here: other goroutines must not get the thread's user and
	// signal mask, so the runtime ends it with this one.
	defer close(s.stopped)
	_, err := blockSignals()
	if err == nil && id != nil {
		err = dumpable.keep(func() error { return become(*id) })
	}
	if err == nil && s.idle != nil {
		s.keyring, err = joinKeyring() // the programs of idle threads join the same one
	}
	ready <- err
	if err != nil {
		return
	}
	for {
		select {
		case r := <-s.requests:
			if r.program.cgroup > 0 {
				r.launch() // writes no id maps, and may take as long as a guest likes
				continue
			}
			lower := dumpable.raise()
			r.launch()
			lower()
		case <-s.quit:
			return
		}
	}
}

// blockSignals blocks all signals for the calling thread and so for the children it
// makes: a handler that ran in one would use this thread's stack.
func blockSignals() (before unix.Sigset_t, err error) {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	err = unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before)
	return before, err
}

// become changes the user of the calling thread only.
func become(id Identity) error {
	const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP: keep the capabilities
	uid, gid := uintptr(id.UID), uintptr(id.GID)
	for _, c := range []struct {
		name string
		nr   uintptr
		args [3]uintptr
	}{
		{"prctl(PR_SET_SECUREBITS)", unix.SYS_PRCTL, [3]uintptr{unix.PR_SET_SECUREBITS, noSetuidFixup}},
		{"setgroups", unix.SYS_SETGROUPS, [3]uintptr{}},
		{"setresgid", unix.SYS_SETRESGID, [3]uintptr{gid, gid, gid}},
		{"setresuid", unix.SYS_SETRESUID, [3]uintptr{uid, uid, uid}},
	} {
		// Raw calls: the wrappers of package syscall change every thread.
		if _, _, e := unix.RawSyscall(c.nr, c.args[0], c.args[1], c.args[2]); e != 0 {
			return fmt.Errorf("%s for uid %d: %w", c.name, id.UID, e)
		}
	}
	return nil
}

// Run executes the program in a new process and returns when that process has
// ended. It is for programs that enter namespaces, open something, or clone the
// process that is wanted and leave. Processes that they clone must not ask for a
// signal at their parent's death: where possible the calling thread starts the
// program, since waking another costs as much as the start itself (measured: 33 us
// instead of 64). flags are CLONE_… for the process.
func (s *Spawner) Run(p *Program, flags uint64) error {
	if s.runsHere {
		_, err := s.runHere(p, flags, true)
		return err
	}
	if p.cgroup > 0 {
		return s.runAside(p, flags)
	}
	return s.RunOnThread(p, flags)
}

// RunOnThread is Run on the spawner's own thread, for programs that write id maps or
// whose processes ask for a signal at their parent's death.
func (s *Spawner) RunOnThread(p *Program, flags uint64) error {
	_, err := s.do(p, flags, true)
	return err
}

// Start executes the program in a new process and returns its pid when it has called
// execve. The caller waits for it, with __WALL. If a step fails, no process is left.
// flags are CLONE_… for the process.
func (s *Spawner) Start(p *Program, flags uint64) (pid int, err error) {
	return s.do(p, flags, false)
}

func (s *Spawner) do(p *Program, flags uint64, reap bool) (int, error) {
	if s.threadless {
		return s.runHere(p, flags, reap)
	}
	r := newRequest(p, flags, reap)
	select {
	case s.requests <- r:
		<-r.done
		return r.pid, r.err
	case <-s.stopped:
		return 0, ErrStopped
	}
}

// runHere executes the program from the calling thread.
func (s *Spawner) runHere(p *Program, flags uint64, reap bool) (pid int, err error) {
	select {
	case <-s.quit:
		return 0, ErrStopped
	default:
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mask, err := blockSignals()
	if err != nil {
		return 0, err
	}
	r := newRequest(p, flags, reap)
	if s.threadless && p.cgroup == 0 { // see loop
		defer dumpable.raise()()
	}
	r.launch()
	return r.pid, errors.Join(r.err, unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil))
}

// keepIdle is the number of threads that are kept for the next programs of runAside.
const keepIdle = 4

// runAside is RunOnThread on a thread for this program alone: a guest can hold it up,
// and would otherwise hold up all others of this spawner.
func (s *Spawner) runAside(p *Program, flags uint64) error {
	var t *Spawner
	select {
	case t = <-s.idle:
	default:
		t = &Spawner{id: s.id}
		if err := t.startThread(); err != nil {
			return err
		}
	}
	err := t.RunOnThread(p, flags)
	select {
	case s.idle <- t:
	default:
		t.Close()
	}
	return err
}

// Close ends the thread; PR_SET_PDEATHSIG kills the children that asked for it. The
// caller ensures that nothing is being started. Close is safe twice.
func (s *Spawner) Close() {
	s.close.Do(func() { close(s.quit) })
	<-s.stopped
	for len(s.idle) > 0 {
		(<-s.idle).Close()
	}
}
