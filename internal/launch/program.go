//go:build linux && (amd64 || arm64)

package launch

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is one system call of a Program. The assembly reads and writes it, at the
// offsets that the compiler puts into go_asm.h.
type step struct {
	nr    uintptr
	args  [6]uintptr
	dst   *uintptr // where the result goes; nil drops it
	kind  uintptr  // kindTry, kindClone, and a kindRef bit for each argument
	child *step    // kindClone: where the new process continues
	tsc   uint64   // cycle counter when the step began; 0 if it never did
	errno uintptr  // kindTry: why it failed; 0 if it did not
}

const (
	kindTry   = 1 << 0 // a failure is recorded and the program continues
	kindClone = 1 << 1 // a result of 0 means that this is the child
	kindRef   = 8      // bit kindRef+i: args[i] is the address of a Slot
)

// A Slot holds a number that one step produces and later steps use, such as the
// descriptor of an openat. Go code reads it after the program has run.
type Slot struct{ v uintptr }

// Int returns the number that the step stored, or -1 if it failed or never ran. It
// reads the lower half only: for Clone the kernel writes no more.
func (s *Slot) Int() int { return int(int32(atomic.LoadUintptr(&s.v))) }

// Set stores a number from Go code, even while a process runs the program.
func (s *Slot) Set(v int) { atomic.StoreUintptr(&s.v, uintptr(v)) }

// Arg is one argument of a step.
type Arg struct {
	v   uintptr
	ref bool
}

// Int returns a number as an argument: a flag, a constant, an existing descriptor.
func Int[T ~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64 | ~uintptr](v T) Arg {
	return Arg{v: uintptr(v)}
}

// Arg returns an argument: the number in the slot at the time the step runs.
func (s *Slot) Arg() Arg { return Arg{v: uintptr(unsafe.Pointer(s)), ref: true} }

// Phase is the part of a start that a step belongs to. Timings are added up by
// phase.
type Phase uint8

// The phases of a start, in the order in which they usually come.
const (
	Namespaces Phase = iota + 1 // clone, setns and id maps
	Mounts                      // the file tree
	Confine                     // descriptors, limits, privileges
	Exec                        // execve, until the kernel has loaded the image
)

func (p Phase) String() string {
	return [...]string{"", "namespaces", "mounts", "confine", "exec"}[p]
}

type note struct {
	what, path string
	phase      Phase
}

// A Program is a list of system calls for one new process. Ordinary Go code builds
// it, String prints it, and a Spawner runs it once.
//
// A Program owns the memory its steps point to. It must stay reachable until its
// process has called execve or has died: the process reads the steps from the
// memory of this one. A Program is not safe for concurrent use.
type Program struct {
	steps  []step
	notes  []note
	nested []*Program
	slots  []*Slot
	chunks [][]byte
	kept   []any
	cpus   *unix.CPUSet // where the host's thread may run
	phase  Phase        // of the next step
	began  uint64       // cycles, before the clone
	report report
	clone2 bool // start it by clone(2)
	cgroup int  // 1 more than the descriptor of the cgroup to start in; 0: the caller's
}

// A failing step leaves its address and errno in report.
type report struct {
	step  uintptr
	errno uintptr
}

// NewProgram returns an empty program with a capacity of n steps.
func NewProgram(n int) *Program {
	return &Program{steps: make([]step, 0, n), notes: make([]note, 0, n), phase: Namespaces}
}

// Phase sets the phase of the steps that follow.
func (p *Program) Phase(ph Phase) { p.phase = ph }

// Step identifies a step just added, so that the caller can qualify it.
type Step struct {
	p *Program
	i int
}

// Do adds a system call. what and path state its purpose, in the words of an error
// message: "mount tmpfs", "/tmp". Arguments left out are 0; six are the most.
func (p *Program) Do(what, path string, nr uintptr, args ...Arg) Step {
	s := step{nr: nr}
	for i, a := range args {
		s.args[i] = a.v
		if a.ref {
			s.kind |= 1 << (kindRef + i)
		}
	}
	p.steps = append(p.steps, s)
	p.notes = append(p.notes, note{what, path, p.phase})
	return Step{p, len(p.steps) - 1}
}

// Try lets the program continue if the step fails; see Errno.
func (s Step) Try() Step {
	s.p.steps[s.i].kind |= kindTry
	return s
}

// Slot stores the step's result in a new slot for later steps.
func (s Step) Slot() *Slot {
	slot := s.p.NewSlot()
	s.p.steps[s.i].dst = &slot.v
	return slot
}

// Into stores the step's result in an existing slot.
func (s Step) Into(slot *Slot) { s.p.steps[s.i].dst = &slot.v }

// Errno returns why a step qualified by Try failed; 0 if it did not.
func (s Step) Errno() uintptr { return s.p.steps[s.i].errno }

// Expect adds a step that fails with EAGAIN unless the 32 bits at at+offset, which an
// earlier step has filled in, equal want. It uses a comparison that the kernel makes
// before it wakes waiters, of which there are none (futex(2), FUTEX_CMP_REQUEUE).
func (p *Program) Expect(what, path string, at Arg, offset uintptr, want Arg) {
	at.v += offset
	p.Do(what, path, unix.SYS_FUTEX, at, Int(futexCmpRequeue), Int(0), Int(0), p.Words(0), want)
}

const futexCmpRequeue = 4 | 128 // FUTEX_CMP_REQUEUE_PRIVATE

// NewSlot returns a slot that holds -1, owned by the program.
func (p *Program) NewSlot() *Slot {
	slot := &Slot{v: ^uintptr(0)}
	p.slots = append(p.slots, slot)
	return slot
}

// Clone adds a clone3 whose child runs the program child, in the same memory. The
// slot receives the child's pid, as the cloning process sees it, before the child
// runs: with CLONE_VFORK the step may take long.
func (p *Program) Clone(what string, c CloneArgs, child *Program) *Slot {
	args := (*cloneArgs)(p.alloc(unsafe.Sizeof(cloneArgs{})))
	*args = c.raw()
	s := p.Do(what, "", sysClone3, Arg{v: uintptr(unsafe.Pointer(args))}, Int(unsafe.Sizeof(*args)))
	p.steps[s.i].kind |= kindClone
	p.nested = append(p.nested, child)
	slot := s.Slot()
	args.flags |= unix.CLONE_PARENT_SETTID
	args.parentTID = uint64(uintptr(unsafe.Pointer(&slot.v)))
	return slot
}

// UseClone2 starts the program with clone(2): container seccomp filters often refuse
// clone3. Its process then keeps signal handlers, but none can run there, because
// all signals are blocked.
func (p *Program) UseClone2() { p.clone2 = true }

// StartInCgroup starts the program's process, and everything it clones, in the
// cgroup whose directory fd is (CLONE_INTO_CGROUP, Linux 5.7). The caller must have
// the right to move itself there, and keeps fd open until the program has run.
//
// The processes share the host's memory until they have called execve, and when the
// kernel runs out of memory it kills all processes that share memory with its
// victim. A guest must not be able to get the host killed by using up its cgroup's
// memory. So the cgroup must have no memory.max, and memory.oom.group must be 0,
// until all of them have executed something or are dead. Every clone in the program
// must have CLONE_VFORK, which the kernel spares (in_vfork in mm/oom_kill.c) when it
// kills for the cgroups above; this does not hold at the very end of an execve or
// exit.
func (p *Program) StartInCgroup(fd int) { p.cgroup = fd + 1 }

// Clone2 is Clone by clone(2). The cloning process gets SIGCHLD when the child ends.
func (p *Program) Clone2(what string, flags uint64, child *Program) *Slot {
	s := p.Do(what, "", unix.SYS_CLONE, Int(flags|unix.CLONE_VM|uint64(unix.SIGCHLD)))
	p.steps[s.i].kind |= kindClone
	p.nested = append(p.nested, child)
	return s.Slot()
}

// link closes the programs. Each gets a last step exit_group(0), which ends a process
// that has not called execve, and each clone step gets its child's first step.
func (p *Program) link() {
	p.Do("exit", "", sysExitGroup, Int(0))
	n := 0
	for i := range p.steps {
		if p.steps[i].kind&kindClone != 0 {
			p.nested[n].link()
			p.steps[i].child = &p.nested[n].steps[0]
			n++
		}
	}
}

// find returns the note of the step at an address, in p or in what it clones.
func (p *Program) find(addr uintptr) (note, uintptr, bool) {
	for i := range p.steps {
		if uintptr(unsafe.Pointer(&p.steps[i])) == addr {
			return p.notes[i], p.steps[i].nr, true
		}
	}
	for _, c := range p.nested {
		if n, nr, ok := c.find(addr); ok {
			return n, nr, ok
		}
	}
	return note{}, 0, false
}

// Err returns the failure of the program, or of one that it cloned: a *StepError, or
// nil. Call it after the process has ended or has called execve.
func (p *Program) Err() error {
	if p.report.errno == 0 {
		return nil
	}
	n, nr, _ := p.find(p.report.step) // found: only the program's steps report
	return &StepError{What: n.what, Path: n.path, Call: call(nr).name, Errno: syscall.Errno(p.report.errno)}
}

// Stamp is the time at which a step began.
type Stamp struct {
	What, Path string // as in Program.Do
	Phase      Phase  // as set by Program.Phase
	Cycles     uint64 // the counter of Cycles; see Clock
}

// Stamps lists the steps that have run, of p and of the programs it cloned, in
// program order. The first is the clone that started p.
func (p *Program) Stamps() []Stamp {
	var out []Stamp
	if p.began != 0 {
		out = append(out, Stamp{What: "clone", Phase: Namespaces, Cycles: p.began})
	}
	n := 0
	for i := range p.steps {
		if s := &p.steps[i]; s.tsc != 0 {
			out = append(out, Stamp{p.notes[i].what, p.notes[i].path, p.notes[i].phase, s.tsc})
		}
		if p.steps[i].kind&kindClone != 0 {
			out = append(out, p.nested[n].Stamps()...)
			n++
		}
	}
	return out
}

// cloneArgs is struct clone_args of clone3(2), version 2 (Linux 5.7).
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal uint64
	stack, stackSize, tls, setTID, setTIDSize     uint64
	cgroup                                        uint64
}

// CloneArgs states how a step clones. The child always shares this process's memory
// and starts with default signal handlers. It sends no signal when it ends, so a
// host program that waits for any child does not see it.
type CloneArgs struct {
	Flags uint64 // CLONE_NEWUSER, CLONE_PARENT, CLONE_VFORK, …
}

func (c CloneArgs) raw() cloneArgs {
	return cloneArgs{flags: c.Flags | unix.CLONE_VM | unix.CLONE_CLEAR_SIGHAND}
}
