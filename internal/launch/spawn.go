//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	sysClone3    = unix.SYS_CLONE3
	sysExitGroup = unix.SYS_EXIT_GROUP

	cloneIntoCgroup = 1 << 33 // CLONE_INTO_CGROUP
)

// cloneArgs is struct clone_args of clone3(2), version 2 (Linux 5.7).
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal uint64
	stack, stackSize, tls, setTID, setTIDSize     uint64
	cgroup                                        uint64
}

// CloneArgs says how a step clones. The child always shares this process's
// memory, starts with default signal handlers, and sends no signal when it
// ends, so that a host program that waits for any child does not see it.
type CloneArgs struct {
	Flags uint64 // CLONE_NEWUSER, CLONE_PARENT, CLONE_VFORK, …
}

func (c CloneArgs) raw() cloneArgs {
	return cloneArgs{flags: c.Flags | unix.CLONE_VM | unix.CLONE_CLEAR_SIGHAND}
}

//go:noescape
func spawn(nr, arg0, arg1 uintptr, first *step, rep *report) (pid uintptr)
func pauseCode() unsafe.Pointer
func reaperCode() unsafe.Pointer
func gateCode() unsafe.Pointer
func cycles() uint64

//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// vfork is spawn as a blocking system call: the runtime goes on without this
// thread, so a slow kernel delays neither the scheduler nor the collector.
//
//go:nosplit
//go:norace
func vfork(nr, arg0, arg1 uintptr, first *step, rep *report) uintptr {
	entersyscall()
	pid := spawn(nr, arg0, arg1, first, rep)
	exitsyscall()
	return pid
}

// Identity is the user that a spawner's children run as on the host.
type Identity struct{ UID, GID int }

// A Spawner starts processes. It has a thread of its own, which lives until
// Close: PR_SET_PDEATHSIG speaks of the thread that made the child, not of its
// process. Its methods may be called concurrently.
type Spawner struct {
	runsHere   bool // Run needs no thread of its own: children run as the caller
	threadless bool // nor does anything else
	keyring    string
	id         *Identity
	idle       chan *Spawner // for programs that a guest may hold up; nil: this is one
	requests   chan *request
	quit       chan struct{} // closed by Close
	stopped    chan struct{} // closed when the thread has ended
	close      sync.Once
}

type request struct {
	program *Program
	args    cloneArgs
	reap    bool
	pid     int
	err     error
	done    chan struct{}
}

func newRequest(p *Program, flags uint64, reap bool) *request {
	r := &request{program: p, args: CloneArgs{flags | unix.CLONE_VFORK}.raw(), reap: reap, done: make(chan struct{})}
	if p.cgroup > 0 {
		r.args.flags |= cloneIntoCgroup
		r.args.cgroup = uint64(p.cgroup - 1)
	}
	return r
}

// NewCallerSpawner returns a spawner without a thread of its own: everything starts
// from the threads that call, as the caller. What asks for a signal at its
// parent's death gets it when the thread ends that called Start.
//
// The calling thread loses its session keyring to an empty one.
func NewCallerSpawner() (*Spawner, error) {
	s := &Spawner{runsHere: true, threadless: true, quit: make(chan struct{}), stopped: make(chan struct{})}
	close(s.stopped)
	var err error
	s.keyring, err = joinKeyring()
	return s, err
}

// Keyring is the name of an empty session keyring for programs to join that Run
// executes, before they enter a user namespace; "" when there is none to join.
func (s *Spawner) Keyring() string { return s.keyring }

// NewSpawner starts the thread. With a nil identity its children run as the
// caller. Otherwise the thread, and it alone, becomes that user; it keeps the
// capabilities it has, which needs CAP_SETUID, CAP_SETGID and CAP_SETPCAP.
//
// The change is made here, once, and not in the children: a change of uid
// clears the dumpable flag of the memory that a child shares with the host
// process. It is put back before anything is started.
func NewSpawner(id *Identity) (*Spawner, error) {
	s := &Spawner{runsHere: id == nil, id: id, idle: make(chan *Spawner, keepIdle)}
	return s, s.begin()
}

// begin starts the thread.
func (s *Spawner) begin() error {
	s.requests, s.quit, s.stopped = make(chan *request), make(chan struct{}), make(chan struct{})
	ready := make(chan error)
	go s.loop(s.id, ready)
	return <-ready
}

func (s *Spawner) loop(id *Identity, ready chan<- error) {
	runtime.LockOSThread()
	if id != nil && unix.Gettid() == unix.Getpid() {
		// The main thread's user is the process's to others: who may send it
		// signals, who owns its /proc. It is kept busy until another is found.
		elsewhere := make(chan error)
		go s.loop(id, elsewhere)
		ready <- <-elsewhere
		runtime.UnlockOSThread()
		return
	}
	// Never unlocked from here: the thread's user and signal mask must not be
	// seen by other goroutines, so the runtime ends it with this one.
	defer close(s.stopped)
	_, err := blockSignals()
	if err == nil && id != nil {
		err = dumpable.keep(func() error { return become(*id) })
	}
	if err == nil && s.idle != nil {
		s.keyring, err = joinKeyring() // the others' programs join it, too
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

// blockSignals blocks all signals for the calling thread and so for the
// children it makes: a handler that ran in one would use this thread's stack.
func blockSignals() (before unix.Sigset_t, err error) {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	err = unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before)
	return before, err
}

// launch runs on the spawner's thread, or on one that is as good.
func (r *request) launch() {
	r.program.link()
	unpin := r.program.pin()
	r.program.began = cycles()
	nr, arg0, arg1 := uintptr(sysClone3), uintptr(unsafe.Pointer(&r.args)), unsafe.Sizeof(r.args)
	if r.program.clone2 {
		nr, arg0, arg1 = unix.SYS_CLONE, uintptr(r.args.flags&^unix.CLONE_CLEAR_SIGHAND), 0
	}
	pid := vfork(nr, arg0, arg1, &r.program.steps[0], &r.program.report)
	runtime.KeepAlive(r)
	unpin()
	if pid > ^uintptr(4095) {
		r.err = cloneError(syscall.Errno(-pid))
		close(r.done)
		return
	}
	r.pid, r.err = int(pid), r.program.Err()
	ended := r.reap || r.err != nil
	// The caller need not wait for the end of a process whose work is done.
	close(r.done)
	if ended {
		_ = Reap(int(pid)) // it is this thread's own child
	}
}

// pin keeps the calling thread, and so the children it is about to have, on the
// processor it runs on: a thread that sleeps until its child is done gains
// nothing from a child elsewhere, and waking an idle processor costs more than
// a short program does (measured: 33 us instead of 64 to start a child that
// exits). The children that go on undo it with the step FreeCPUs.
func (p *Program) pin() (unpin func()) {
	if p.cpus == nil {
		p.cpus = new(unix.CPUSet)
	}
	var cpu uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	if errno != 0 || unix.SchedGetaffinity(0, p.cpus) != nil {
		return func() {}
	}
	var one unix.CPUSet
	one.Set(int(cpu))
	if unix.SchedSetaffinity(0, &one) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetaffinity(0, p.cpus) } // it was allowed before
}

// FreeCPUs adds a step that lets the process run where the host process may.
// Every program that goes on to execve needs one; from is the outermost
// program.
func (p *Program) FreeCPUs(from *Program) {
	if from.cpus == nil {
		from.cpus = new(unix.CPUSet)
	}
	p.Do("reset CPU affinity", "", unix.SYS_SCHED_SETAFFINITY, Int(0), Int(unsafe.Sizeof(*from.cpus)), Arg{v: uintptr(unsafe.Pointer(from.cpus))}).Try()
}

// Reap waits for a child that is about to end by itself, or has been killed.
func Reap(pid int) error {
	for {
		if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != unix.EINTR {
			return err
		}
	}
}

// become changes the user of the calling thread only.
func become(id Identity) error {
	const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP: keep the capabilities
	uid, gid := uintptr(id.UID), uintptr(id.GID)
	for _, c := range []struct {
		name          string
		nr, a0, a1, a uintptr
	}{
		{"prctl(PR_SET_SECUREBITS)", unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, noSetuidFixup, 0},
		{"setgroups", unix.SYS_SETGROUPS, 0, 0, 0},
		{"setresgid", unix.SYS_SETRESGID, gid, gid, gid},
		{"setresuid", unix.SYS_SETRESUID, uid, uid, uid},
	} {
		// Raw calls: the wrappers of package syscall change every thread.
		if _, _, e := unix.RawSyscall(c.nr, c.a0, c.a1, c.a); e != 0 {
			return fmt.Errorf("%s for uid %d: %w", c.name, id.UID, e)
		}
	}
	return nil
}

// Run executes the program in a new process and returns when that process has
// ended: for programs that enter namespaces, open something, or clone the
// process that is wanted and leave. What it clones must not ask for a signal
// at its parent's death: it is started by whichever thread calls, where that
// is possible, since waking another costs as much as the start itself
// (measured: 33 us instead of 64).
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

// keepIdle is how many threads are kept for the next programs of runAside.
const keepIdle = 4

// runAside is RunOnThread from a thread for this program alone: the guests that can
// hold it up would otherwise hold up all others of this spawner.
func (s *Spawner) runAside(p *Program, flags uint64) error {
	var t *Spawner
	select {
	case t = <-s.idle:
	default:
		t = &Spawner{id: s.id}
		if err := t.begin(); err != nil {
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

// RunOnThread is Run from the spawner's own thread, for programs that write id maps
// or whose processes ask for a signal at their parent's death.
func (s *Spawner) RunOnThread(p *Program, flags uint64) error {
	_, err := s.do(p, flags, true)
	return err
}

// Start executes the program in a new process and returns its pid when it has
// called execve. The caller waits for it, with __WALL. When a step fails there
// is no process.
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

// Close ends the thread; PR_SET_PDEATHSIG kills the children that asked for
// it. The caller sees to it that nothing is being started. Close is safe twice.
func (s *Spawner) Close() {
	s.close.Do(func() { close(s.quit) })
	<-s.stopped
	for len(s.idle) > 0 {
		(<-s.idle).Close()
	}
}

// cloneError explains a clone3 that failed before there was a new process.
func cloneError(e syscall.Errno) error {
	switch e {
	case syscall.ENOSYS:
		return &UnsupportedError{Feature: FeatureClone3, Since: "5.3", Err: e,
			Remedy: "on a newer kernel an outer container's seccomp filter refuses it"}
	case syscall.EINVAL:
		return &UnsupportedError{Feature: FeatureClone3 + " with these flags", Since: "5.5", Err: e}
	}
	return &StepError{What: StartProcess, Call: "clone3", Errno: e}
}
