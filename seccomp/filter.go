package seccomp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Insn is an instruction of classic BPF, struct sock_filter of linux/filter.h.
type Insn struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

// A Filter is a program that the kernel runs at each system call.
type Filter []Insn

// Call is what a filter sees of a system call: struct seccomp_data.
type Call struct {
	Nr   uint32
	Arch uint32 // AUDIT_ARCH_…
	IP   uint64
	Args [6]uint64
}

// AuditArch is the AUDIT_ARCH_… value of a GOARCH, or 0.
func AuditArch(goarch string) uint32 {
	switch goarch {
	case "amd64":
		return 0xc000003e
	case "arm64":
		return 0xc00000b7
	}
	return 0
}

// The instructions that libseccomp makes.
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

// word is the 32-bit word of struct seccomp_data at an offset, as a little-endian
// kernel has it.
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

// Decide runs the filter, as the kernel would.
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

// check returns an error for what Decide and lower cannot run: they take what
// libseccomp makes, which ends and stays within itself.
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
			return fmt.Errorf("seccomp: instruction %d leads out of the filter", pc)
		}
	}
	return nil
}

// Bytes is the filter as the kernel takes it, on a little-endian machine.
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

// Audited is the filter with every refusal handed to a supervisor, who is to
// answer what Decide of f says.
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

// String lists the instructions, for golden files.
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
