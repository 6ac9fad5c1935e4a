//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	sysClone3    = unix.SYS_CLONE3
	sysExitGroup = unix.SYS_EXIT_GROUP
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
func spawn(args *cloneArgs, first *step, rep *report) (pid uintptr)
func pauseCode() unsafe.Pointer
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
func vfork(args *cloneArgs, first *step, rep *report) uintptr {
	entersyscall()
	pid := spawn(args, first, rep)
	exitsyscall()
	return pid
}

// Identity is the user that a spawner's children run as on the host.
type Identity struct{ UID, GID int }

// A Spawner starts processes from one thread of its own, which lives until
// Close: PR_SET_PDEATHSIG speaks of the thread that made the child, not of its
// process. Its methods may be called concurrently; programs run one at a time.
type Spawner struct {
	requests chan *request
	quit     chan struct{} // closed by Close
	stopped  chan struct{} // closed when the thread has ended
	close    sync.Once
}

type request struct {
	program *Program
	args    cloneArgs
	reap    bool
	pid     int
	err     error
	done    chan struct{}
}

// NewSpawner starts the thread. With a nil identity its children run as the
// caller. Otherwise the thread, and it alone, becomes that user; it keeps the
// capabilities it has, which needs CAP_SETUID, CAP_SETGID and CAP_SETPCAP.
//
// The change is made here, once, and not in the children: a change of uid
// clears the dumpable flag of the memory that a child shares with the host
// process. It is put back before anything is started.
func NewSpawner(id *Identity) (*Spawner, error) {
	s := &Spawner{requests: make(chan *request), quit: make(chan struct{}), stopped: make(chan struct{})}
	ready := make(chan error)
	go s.loop(id, ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Spawner) loop(id *Identity, ready chan<- error) {
	defer close(s.stopped)
	// Never unlocked: the thread's user and signal mask must not be seen by
	// other goroutines, so the runtime ends it with this one.
	runtime.LockOSThread()
	// A signal handler that ran in a child would run on this thread's stack.
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil)
	if err == nil && id != nil {
		err = become(*id)
	}
	ready <- err
	if err != nil {
		return
	}
	for {
		select {
		case r := <-s.requests:
			r.launch()
		case <-s.quit:
			return
		}
	}
}

// launch runs on the spawner's thread.
func (r *request) launch() {
	r.program.link()
	pid := vfork(&r.args, &r.program.steps[0], &r.program.report)
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
		wait(int(pid))
	}
}

// wait reaps a child that is about to end by itself.
func wait(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != unix.EINTR {
			return
		}
	}
}

// become changes the user of the calling thread only.
func become(id Identity) error {
	const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP: keep the capabilities
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("prctl(PR_GET_DUMPABLE): %w", err)
	}
	uid, gid := uintptr(id.UID), uintptr(id.GID)
	for _, c := range []struct {
		name          string
		nr, a0, a1, a uintptr
	}{
		{"prctl(PR_SET_SECUREBITS)", unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, noSetuidFixup, 0},
		{"setgroups", unix.SYS_SETGROUPS, 0, 0, 0},
		{"setresgid", unix.SYS_SETRESGID, gid, gid, gid},
		{"setresuid", unix.SYS_SETRESUID, uid, uid, uid},
		// The id maps are written through /proc/self, which belongs to root
		// while the process is not dumpable.
		{"prctl(PR_SET_DUMPABLE)", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, uintptr(dumpable), 0},
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
// process that is wanted and leave.
func (s *Spawner) Run(p *Program, flags uint64) error {
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
	r := &request{program: p, args: CloneArgs{flags | unix.CLONE_VFORK}.raw(), reap: reap, done: make(chan struct{})}
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
}

// A Clock converts cycle stamps to time. It is safe for concurrent use.
type Clock struct {
	cycles uint64
	time   time.Time
}

// NewClock takes the first of the two readings that give the rate.
func NewClock() Clock { return Clock{cycles(), time.Now()} }

// Rate returns nanoseconds a cycle, better the longer ago NewClock was.
func (c Clock) Rate() float64 {
	n := cycles() - c.cycles
	return float64(time.Since(c.time)) / float64(max(n, 1))
}

// Cycles reads the counter that the steps are stamped with.
func Cycles() uint64 { return cycles() }

// cloneError explains a clone3 that failed before there was a new process.
func cloneError(e syscall.Errno) error {
	switch e {
	case syscall.ENOSYS:
		return &UnsupportedError{Feature: "clone3", Since: "5.3", Err: e,
			Remedy: "on a newer kernel an outer container's seccomp filter refuses it"}
	case syscall.EINVAL:
		return &UnsupportedError{Feature: "clone3 with these flags", Since: "5.5", Err: e}
	}
	return &StepError{What: "start process", Call: "clone3", Errno: e}
}
