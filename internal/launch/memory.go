//go:build linux && (amd64 || arm64)

package launch

import "unsafe"

// The memory that a program's steps point to: strings, vectors and structures of
// the kernel.

// Str returns the address of a NUL-terminated copy of v.
func (p *Program) Str(v string) Arg {
	mem := unsafe.Slice((*byte)(p.alloc(uintptr(len(v)+1))), len(v)+1)
	copy(mem, v)
	mem[len(v)] = 0
	return Arg{v: uintptr(unsafe.Pointer(&mem[0]))}
}

// Bytes returns the address of a copy of v, which must not be empty.
func (p *Program) Bytes(v []byte) Arg {
	mem := unsafe.Slice((*byte)(p.alloc(uintptr(len(v)))), len(v))
	copy(mem, v)
	return Arg{v: uintptr(unsafe.Pointer(&mem[0]))}
}

// Words returns the address of a copy of v: a structure of 64-bit fields.
func (p *Program) Words(v ...uint64) Arg {
	mem := unsafe.Slice((*uint64)(p.alloc(uintptr(len(v)*8))), len(v))
	copy(mem, v)
	return Arg{v: uintptr(unsafe.Pointer(&mem[0]))}
}

// Record returns the address of a structure of 64-bit fields. Each is a number or
// the address of something that the program owns, not a slot.
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

// SlotIn returns the slot that is a 64-bit field, counted from 0, of a structure
// made by Words. The kernel finds there what a step has stored.
func (p *Program) SlotIn(words Arg, field int) *Slot {
	return (*Slot)(unsafe.Add(p.memory(words.v), field*8))
}

// Out returns a value for a step to fill in, owned by the program, and its address.
func Out[T any](p *Program) (*T, Arg) {
	v := new(T)
	p.kept = append(p.kept, v)
	return v, Arg{v: uintptr(unsafe.Pointer(v))}
}

// Strings returns the address of a NULL-terminated vector of strings, like argv.
func (p *Program) Strings(v []string) Arg {
	vec := unsafe.Slice((*uintptr)(p.alloc(uintptr(len(v)+1)*unsafe.Sizeof(uintptr(0)))), len(v)+1)
	for i, s := range v {
		vec[i] = p.Str(s).v
	}
	vec[len(v)] = 0
	return Arg{v: uintptr(unsafe.Pointer(&vec[0]))}
}

// alloc returns n zero bytes, aligned for any field, that live as long as p. The
// garbage collector does not move chunks, and they never grow in place.
func (p *Program) alloc(n uintptr) unsafe.Pointer {
	const chunk = 4096
	need := int(n+7) &^ 7
	if last := len(p.chunks) - 1; last < 0 || cap(p.chunks[last])-len(p.chunks[last]) < need {
		words := make([]uint64, max(need, chunk)/8) // 8-byte aligned and zero
		p.chunks = append(p.chunks, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:0])
	}
	c := &p.chunks[len(p.chunks)-1]
	at := len(*c)
	*c = (*c)[:at+need]
	return unsafe.Pointer(&(*c)[at])
}

// memory returns a pointer into the program's own memory, at an address from alloc.
func (p *Program) memory(addr uintptr) unsafe.Pointer {
	for _, c := range p.chunks {
		if base := uintptr(unsafe.Pointer(&c[0])); addr >= base && addr < base+uintptr(len(c)) {
			return unsafe.Pointer(&c[addr-base])
		}
	}
	panic("launch: not the program's memory")
}
