package seccomp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Insn is an instruction of classic BPF: struct sock_filter of linux/filter.h.
type Insn struct {
	Code   uint16 // the operation: BPF_LD, BPF_JMP, …
	JT, JF uint8  // instructions to skip if a comparison holds, and if it does not
	K      uint32 // the operand
}

// A Filter is a program that the kernel runs at each system call. Filters of this
// package have 1 to 4096 instructions, jump only forward and end with a return.
type Filter []Insn

// Call is a system call as a filter sees it: struct seccomp_data.
type Call struct {
	Nr   uint32    // the call's number on Arch
	Arch uint32    // AUDIT_ARCH_…, see AuditArch
	IP   uint64    // the instruction pointer
	Args [6]uint64 // the arguments; unused ones may hold anything
}

// AuditArch returns the AUDIT_ARCH_… value of a GOARCH, for Call.Arch, or 0 if it
// is neither amd64 nor arm64.
func AuditArch(goarch string) uint32 {
	switch goarch {
	case "amd64":
		return 0xc000003e
	case "arm64":
		return 0xc00000b7
	}
	return 0
}

// The instructions that libseccomp generates.
const (
	opLoad = 0x20 // BPF_LD|BPF_W|BPF_ABS
	opAnd  = 0x54 // BPF_ALU|BPF_AND|BPF_K
	opJump = 0x05 // BPF_JMP|BPF_JA
	opEq   = 0x15 // BPF_JMP|BPF_JEQ|BPF_K
	opGt   = 0x25
	opGe   = 0x35
	opSet  = 0x45
	opRet  = 0x06 // BPF_RET|BPF_K
)

// word returns the 32-bit word at an offset of struct seccomp_data on a little-endian
// machine.
func (c Call) word(off uint32) uint32 {
	switch {
	case off == 0:
		return c.Nr
	case off == 4:
		return c.Arch
	case off >= 8 && off < 64 && off%4 == 0:
		v := c.IP
		if off >= 16 {
			v = c.Args[(off-16)/8]
		}
		return uint32(v >> (off % 8 * 8))
	}
	panic(fmt.Sprintf("seccomp: load of offset %d", off))
}

// Decide runs the filter on a call as the kernel would. It panics if the filter is
// not one of this package.
func (f Filter) Decide(c Call) Action {
	var acc uint32
	for pc := 0; ; pc++ {
		i := f[pc]
		taken := false
		switch i.Code {
		case opLoad:
			acc = c.word(i.K)
			continue
		case opAnd:
			acc &= i.K
			continue
		case opJump:
			pc += int(i.K)
			continue
		case opRet:
			return action(i.K)
		case opEq:
			taken = acc == i.K
		case opGt:
			taken = acc > i.K
		case opGe:
			taken = acc >= i.K
		case opSet:
			taken = acc&i.K != 0
		}
		if taken {
			pc += int(i.JT)
		} else {
			pc += int(i.JF)
		}
	}
}

// check returns an error for a filter that Decide and lower cannot run: one with
// instructions that libseccomp does not generate, or that can run past its end.
func (f Filter) check() error {
	if len(f) == 0 || len(f) > 4096 {
		return fmt.Errorf("seccomp: a filter of %d instructions", len(f))
	}
	for pc, i := range f {
		far := pc + 1
		switch i.Code {
		case opLoad:
			if i.K >= 64 || i.K%4 != 0 {
				return fmt.Errorf("seccomp: instruction %d loads offset %d", pc, i.K)
			}
		case opAnd, opRet:
		case opJump:
			far += int(i.K)
		case opEq, opGt, opGe, opSet:
			far += int(max(i.JT, i.JF))
		default:
			return fmt.Errorf("seccomp: instruction %d has code %#x", pc, i.Code)
		}
		if i.Code != opRet && far >= len(f) {
			return fmt.Errorf("seccomp: instruction %d jumps past the end", pc)
		}
	}
	return nil
}

// Bytes encodes the filter as an array of struct sock_filter in little-endian byte
// order, as the kernel takes it on amd64 and arm64.
func (f Filter) Bytes() []byte {
	b := make([]byte, 0, len(f)*8)
	for _, i := range f {
		b = binary.LittleEndian.AppendUint16(b, i.Code)
		b = append(b, i.JT, i.JF)
		b = binary.LittleEndian.AppendUint32(b, i.K)
	}
	return b
}

// parse is the reverse of Bytes.
func parse(b []byte) (Filter, error) {
	if len(b)%8 != 0 {
		return nil, fmt.Errorf("seccomp: a filter of %d bytes", len(b))
	}
	f := make(Filter, 0, len(b)/8)
	for ; len(b) > 0; b = b[8:] {
		f = append(f, Insn{binary.LittleEndian.Uint16(b), b[2], b[3], binary.LittleEndian.Uint32(b[4:])})
	}
	return f, f.check()
}

// Audited returns a copy of f for a supervisor (seccomp_unotify(2)) that logs
// refusals: it hands every call that f refuses or kills to the supervisor, which must
// enforce f.Decide of that call.
func (f Filter) Audited() Filter {
	out := make(Filter, len(f))
	for pc, i := range f {
		if i.Code == opRet {
			switch action(i.K).Kind {
			case Errno, KillProcess, KillThread:
				i.K = Action{Kind: Notify}.ret()
			}
		}
		out[pc] = i
	}
	return out
}

// String disassembles the filter, one instruction a line.
func (f Filter) String() string {
	var b strings.Builder
	names := map[uint16]string{opEq: "==", opGt: ">", opGe: ">=", opSet: "&"}
	for pc, i := range f {
		fmt.Fprintf(&b, "%3d ", pc)
		switch i.Code {
		case opLoad:
			fmt.Fprintf(&b, "load %s\n", wordName(i.K))
		case opAnd:
			fmt.Fprintf(&b, "and %#x\n", i.K)
		case opJump:
			fmt.Fprintf(&b, "goto %d\n", pc+1+int(i.K))
		case opRet:
			fmt.Fprintf(&b, "return %s\n", action(i.K))
		default:
			fmt.Fprintf(&b, "if %s %#x goto %d else %d\n", names[i.Code], i.K, pc+1+int(i.JT), pc+1+int(i.JF))
		}
	}
	return b.String()
}

func wordName(off uint32) string {
	switch {
	case off == 0:
		return "nr"
	case off == 4:
		return "arch"
	case off < 16:
		return fmt.Sprintf("ip[%d]", (off-8)/4)
	}
	return fmt.Sprintf("arg%d[%d]", (off-16)/8, off%8/4)
}
