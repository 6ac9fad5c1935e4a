//go:build linux && (amd64 || arm64)

package launch

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is one system call of a Program. The assembly reads and writes it, by
// the offsets that the assembler generates into go_asm.h.
type step struct {
	nr    uintptr
	args  [6]uintptr
	dst   *uintptr // where the result goes; nil drops it
	kind  uintptr  // kindTry, kindClone, and one kindRef bit an argument
	child *step    // kindClone: where the new process goes on
	tsc   uint64   // cycle counter when the step began
	errno uintptr  // kindTry: why it failed, 0 when it did not
}

const (
	kindTry   = 1 << 0 // a failure is recorded and the program goes on
	kindClone = 1 << 1 // a result of 0 means: this is the child
	kindRef   = 8      // bit kindRef+i: args[i] is the address of a Slot
)

// A Slot holds a number that one step produces and later steps use, such as
// the descriptor of an openat. After the program has run, Go code reads it.
type Slot struct{ v uintptr }

// Int returns what the step stored, or -1 when it never ran or failed.
//
// The half is looked at that the kernel writes by itself, for Clone.
func (s *Slot) Int() int { return int(int32(atomic.LoadUintptr(&s.v))) }

// Set stores a number from Go code, also while a process runs the program.
func (s *Slot) Set(v int) { atomic.StoreUintptr(&s.v, uintptr(v)) }

// Arg is one argument of a step.
type Arg struct {
	v   uintptr
	ref bool
}

// Int is a number: a flag, a constant, a descriptor that exists already.
func Int[T ~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64 | ~uintptr](v T) Arg {
	return Arg{v: uintptr(v)}
}

// Arg is the number in the slot at the time the step runs.
func (s *Slot) Arg() Arg { return Arg{v: uintptr(unsafe.Pointer(s)), ref: true} }

// Phase says what part of a start a step belongs to. Timing adds up by phase.
type Phase uint8

// The phases of a start, in the order in which they usually come.
const (
	Namespaces Phase = iota + 1 // clone, setns and id maps
	Mounts                      // the file tree
	Confine                     // descriptors, limits, privileges
	Exec                        // execve until the kernel has loaded the image
)

func (p Phase) String() string {
	return [...]string{"", "namespaces", "mounts", "confine", "exec"}[p]
}

type note struct {
	what, path string
	phase      Phase
}

// A Program is a list of system calls for one new process. It is built by
// ordinary Go code, printed by String, and run once by a Spawner.
//
// A Program owns the memory its steps point to. It must stay reachable until
// the process it became has called execve or has died: the process reads the
// steps from the memory of this one. A Program is not safe for concurrent use.
type Program struct {
	steps  []step
	notes  []note
	nested []*Program
	slots  []*Slot
	chunks [][]byte
	kept   []any
	cpus   *unix.CPUSet // where the host's thread may run
	phase  Phase
	began  uint64 // cycles, before the clone
	report report
	clone2 bool // started by clone(2)
	cgroup int  // descriptor of the one it starts in, and 1; 0: the caller's
}

// report is where a failing step leaves its address and errno.
type report struct {
	step  uintptr
	errno uintptr
}

// NewProgram returns an empty program with room for n steps.
func NewProgram(n int) *Program {
	return &Program{steps: make([]step, 0, n), notes: make([]note, 0, n), phase: Namespaces}
}

// Phase sets the phase of the steps that follow.
func (p *Program) Phase(ph Phase) { p.phase = ph }

// Step identifies a step just added, so that it can be qualified.
type Step struct {
	p *Program
	i int
}

// Do adds a system call. what and path say what it is for, in the words of an
// error message: "mount tmpfs", "/tmp".
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

// Try lets the program go on when the step fails; see Errno.
func (s Step) Try() Step {
	s.p.steps[s.i].kind |= kindTry
	return s
}

// Slot stores the step's result for later steps.
func (s Step) Slot() *Slot {
	slot := s.p.NewSlot()
	s.p.steps[s.i].dst = &slot.v
	return slot
}

// Into stores the step's result in an existing slot.
func (s Step) Into(slot *Slot) { s.p.steps[s.i].dst = &slot.v }

// Errno is why a step qualified by Try failed, or 0.
func (s Step) Errno() uintptr { return s.p.steps[s.i].errno }

// Expect adds a step that fails with EAGAIN unless the 32 bits at an offset in
// what an earlier step has filled in are these: the kernel compares them before
// it wakes, as it is asked, nobody (futex(2), FUTEX_CMP_REQUEUE).
func (p *Program) Expect(what, path string, at Arg, offset uintptr, want Arg) {
	at.v += offset
	p.Do(what, path, unix.SYS_FUTEX, at, Int(futexCmpRequeue), Int(0), Int(0), p.Words(0), want)
}

const futexCmpRequeue = 4 | 128 // FUTEX_CMP_REQUEUE_PRIVATE

// NewSlot returns a slot holding -1, owned by the program.
func (p *Program) NewSlot() *Slot {
	slot := &Slot{v: ^uintptr(0)}
	p.slots = append(p.slots, slot)
	return slot
}

// Clone adds a clone3 whose child runs the program child, sharing this one's
// memory. The slot receives the child's pid as the cloning process sees it,
// before the child runs: with CLONE_VFORK the step may take long.
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

// UseClone2 has the program started by clone(2), and not clone3: outer containers'
// filters refuse that. Handlers are then not reset in its process, but none can
// run there, with all signals blocked.
func (p *Program) UseClone2() { p.clone2 = true }

// StartInCgroup has the program's process start in the cgroup that the descriptor of
// a directory leads to (CLONE_INTO_CGROUP, Linux 5.7), and what it clones, too.
// It takes the caller's right to move itself there.
//
// The processes share this one's memory until they have called execve, and the
// kernel kills all that share the memory of what it kills for want of memory.
// So that no guest can have the host killed by using up its cgroup's memory, the
// cgroup must have no memory.max, and memory.oom.group must be 0, until all of
// them have executed something or are dead. All that clones in the program has
// CLONE_VFORK, which the kernel spares (in_vfork in mm/oom_kill.c) when it kills
// for the cgroups above; that does not hold at the very end of an execve or exit.
func (p *Program) StartInCgroup(fd int) { p.cgroup = fd + 1 }

// Clone2 is Clone by clone(2). The child's end is signalled by SIGCHLD.
func (p *Program) Clone2(what string, flags uint64, child *Program) *Slot {
	s := p.Do(what, "", unix.SYS_CLONE, Int(flags|unix.CLONE_VM|uint64(unix.SIGCHLD)), Int(0), Int(0), Int(0), Int(0))
	p.steps[s.i].kind |= kindClone
	p.nested = append(p.nested, child)
	return s.Slot()
}

// Str is the address of a NUL-terminated copy of v.
func (p *Program) Str(v string) Arg {
	mem := unsafe.Slice((*byte)(p.alloc(uintptr(len(v)+1))), len(v)+1)
	copy(mem, v)
	mem[len(v)] = 0
	return Arg{v: uintptr(unsafe.Pointer(&mem[0]))}
}

// Bytes is the address of a copy of v, which may not be empty.
func (p *Program) Bytes(v []byte) Arg {
	mem := unsafe.Slice((*byte)(p.alloc(uintptr(len(v)))), len(v))
	copy(mem, v)
	return Arg{v: uintptr(unsafe.Pointer(&mem[0]))}
}

// Words is the address of a copy of v: a structure of 64-bit fields.
func (p *Program) Words(v ...uint64) Arg {
	mem := unsafe.Slice((*uint64)(p.alloc(uintptr(len(v)*8))), len(v))
	copy(mem, v)
	return Arg{v: uintptr(unsafe.Pointer(&mem[0]))}
}

// Record is the address of a structure of 64-bit fields, each a number or the
// address of something that the program owns.
func (p *Program) Record(fields ...Arg) Arg {
	words := make([]uint64, len(fields))
	for i, f := range fields {
		if f.ref {
			panic("launch: a record's field cannot be a slot; see Words and SlotIn")
		}
		words[i] = uint64(f.v)
	}
	return p.Words(words...)
}

// SlotIn is the slot that lies in a structure made by Words, at a 64-bit field:
// what a step stores in it, the kernel finds there.
func (p *Program) SlotIn(words Arg, field int) *Slot {
	return (*Slot)(unsafe.Add(p.memory(words.v), field*8))
}

// Out returns a value that a step fills in, owned by the program, and its
// address.
func Out[T any](p *Program) (*T, Arg) {
	v := new(T)
	p.kept = append(p.kept, v)
	return v, Arg{v: uintptr(unsafe.Pointer(v))}
}

// Strings is the address of a NULL-terminated vector of strings, as argv is.
func (p *Program) Strings(v []string) Arg {
	vec := unsafe.Slice((*uintptr)(p.alloc(uintptr(len(v)+1)*unsafe.Sizeof(uintptr(0)))), len(v)+1)
	for i, s := range v {
		vec[i] = p.Str(s).v
	}
	vec[len(v)] = 0
	return Arg{v: uintptr(unsafe.Pointer(&vec[0]))}
}

// alloc returns n bytes, aligned for any field, that live as long as p.
// Chunks are not moved by the garbage collector and never grow in place.
func (p *Program) alloc(n uintptr) unsafe.Pointer {
	const chunk = 4096
	need := int(n+7) &^ 7
	if last := len(p.chunks) - 1; last < 0 || cap(p.chunks[last])-len(p.chunks[last]) < need {
		words := make([]uint64, max(need, chunk)/8) // 8-byte aligned, and zero
		p.chunks = append(p.chunks, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:0])
	}
	c := &p.chunks[len(p.chunks)-1]
	at := len(*c)
	*c = (*c)[:at+need]
	return unsafe.Pointer(&(*c)[at])
}

// memory is the program's own memory at an address that alloc returned.
func (p *Program) memory(addr uintptr) unsafe.Pointer {
	for _, c := range p.chunks {
		if base := uintptr(unsafe.Pointer(&c[0])); addr >= base && addr < base+uintptr(len(c)) {
			return unsafe.Pointer(&c[addr-base])
		}
	}
	panic("launch: not the program's memory")
}

// link closes the programs: each ends in exit_group(0), so that a process that
// has nothing to exec ends, and each clone step points to its child's first.
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

// find returns the note of the step at an address, in p or what it clones.
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

// Err is what went wrong in the program or in one that it cloned: a
// *StepError, or nil. Call it when the process has ended or has called execve.
func (p *Program) Err() error {
	if p.report.errno == 0 {
		return nil
	}
	n, nr, _ := p.find(p.report.step)
	return &StepError{What: n.what, Path: n.path, Call: call(nr).name, Errno: syscall.Errno(p.report.errno)}
}

// Stamp is when a step began, in cycles.
type Stamp struct {
	What, Path string
	Phase      Phase
	Cycles     uint64
}

// Stamps lists the steps that have run, p's own and those of its children, in
// program order. The first is the clone that started it all.
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
