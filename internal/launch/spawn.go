//go:build linux && (amd64 || arm64)

package launch

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	sysClone3    = unix.SYS_CLONE3
	sysExitGroup = unix.SYS_EXIT_GROUP

	cloneIntoCgroup = 1 << 33 // CLONE_INTO_CGROUP
)

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

// vfork calls spawn as a blocking system call: the runtime continues without this
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

type request struct {
	program *Program
	args    cloneArgs
	reap    bool // wait for the process's end
	pid     int
	err     error
	done    chan struct{}
}

func newRequest(p *Program, flags uint64, reap bool) *request {
	args := CloneArgs{flags | unix.CLONE_VFORK}.raw()
	if p.cgroup > 0 {
		args.flags |= cloneIntoCgroup
		args.cgroup = uint64(p.cgroup - 1)
	}
	return &request{program: p, args: args, reap: reap, done: make(chan struct{})}
}

// launch runs on the spawner's thread, or on a locked one with all signals blocked.
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
		_ = Reap(int(pid)) // cannot fail: it is this thread's own child
	}
}

// cloneError explains a clone that failed before there was a new process.
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

// pin keeps the calling thread, and so the children it is about to have, on the
// processor it runs on. A thread that sleeps until its child is done gains nothing
// from a child elsewhere, and waking an idle processor costs more than a short
// program does (measured: 33 us instead of 64 to start a child that exits). The
// step FreeCPUs undoes it in children that live on.
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
	return func() { _ = unix.SchedSetaffinity(0, p.cpus) } // at worst it stays pinned: slower, not wrong
}

// FreeCPUs adds a step that lets the process run on all processors of the host
// process. Every program that goes on to execve needs one; from is the outermost
// program.
func (p *Program) FreeCPUs(from *Program) {
	if from.cpus == nil {
		from.cpus = new(unix.CPUSet)
	}
	set := Arg{v: uintptr(unsafe.Pointer(from.cpus))}
	p.Do("reset CPU affinity", "", unix.SYS_SCHED_SETAFFINITY, Int(0), Int(unsafe.Sizeof(*from.cpus)), set).Try()
}

// Reap waits for a child that is about to end by itself, or has been killed.
func Reap(pid int) error {
	for {
		if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != unix.EINTR {
			return err
		}
	}
}
