//go:build libseccomp && cgo && linux

package seccomp

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	lib "github.com/seccomp/libseccomp-golang"
)

// Compile compiles a policy into a filter for a machine: its GOARCH and the release
// of its kernel, as in "6.1". A build without libseccomp returns ErrNoCompiler.
func Compile(p *Policy, goarch, kernel string) (Filter, error) {
	linear, err := p.linear(goarch, kernel)
	if err != nil {
		return nil, err
	}
	short, err := lower(linear)
	if err != nil || len(short) > len(linear) {
		return linear, nil // correct as well, only slower
	}
	return short, nil
}

// CompileBuiltin compiles the profile whose stored filter Builtin returns. It
// exists for go generate, and only in builds with libseccomp.
func CompileBuiltin(profile, goarch string) (Filter, error) {
	long, err := linearBuiltin(profile, goarch)
	if err != nil {
		return nil, err
	}
	return lower(long)
}

// linearBuiltin chains the layers of a profile: each decides on what the one before
// it allows.
func linearBuiltin(profile, goarch string) (out Filter, err error) {
	for _, p := range Lookup(profile).policies() {
		f, err := p.linear(goarch, "")
		if err != nil {
			return nil, err
		}
		out = out.then(f)
	}
	return out, nil
}

// linear returns libseccomp's filter. Additional architectures get a separate
// filter, so that calls which libseccomp does not know yet can be given by number
// in the native one.
func (p *Policy) linear(goarch, kernel string) (Filter, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	native, err := p.export(goarch, kernel, nil)
	if err != nil {
		return nil, err
	}
	others, err := p.otherArchitectures(goarch)
	if err != nil || len(others) == 0 {
		return native.retarget(goarch), err
	}
	foreign, err := p.export(goarch, kernel, others)
	if err != nil {
		return nil, err
	}
	const x32 = 0x40000000 // x32 calls have numbers from here on, and amd64's AUDIT_ARCH
	return slices.Concat(Filter{
		{Code: opLoad, K: 4},
		{Code: opEq, K: AuditArch(goarch), JF: 2},
		{Code: opLoad, K: 0},
		{Code: opGe, K: x32, JF: 1},
		{Code: opJump, K: uint32(len(native))},
	}, native, foreign), nil
}

// export compiles the policy with libseccomp for the native architecture or, unless
// others is empty, for those instead.
func (p *Policy) export(goarch, kernel string, others []lib.ScmpArch) (Filter, error) {
	f, err := lib.NewFilter(libAction(toAction(p.DefaultAction, p.DefaultErrnoRet)))
	if err != nil {
		return nil, fmt.Errorf("libseccomp: %w", err)
	}
	defer f.Release()
	for _, a := range others {
		if err := f.AddArch(a); err != nil {
			return nil, fmt.Errorf("libseccomp: %v: %w", a, err)
		}
	}
	if len(others) > 0 {
		if err := f.RemoveArch(lib.ArchNative); err != nil {
			return nil, fmt.Errorf("libseccomp: %w", err)
		}
	}
	if err := f.SetBadArchAction(lib.ActKillProcess); err != nil {
		return nil, fmt.Errorf("libseccomp: %w", err)
	}
	for _, r := range p.Syscalls {
		if r.applies(goarch, kernel) {
			if err := p.add(f, r, goarch, len(others) > 0); err != nil {
				return nil, err
			}
		}
	}
	return read(f)
}

// otherArchitectures lists the architectures that programs may use besides the
// native one.
func (p *Policy) otherArchitectures(goarch string) (others []lib.ScmpArch, err error) {
	if goarch != runtime.GOARCH {
		return nil, nil
	}
	native, err := lib.GetNativeArch()
	if err != nil {
		return nil, fmt.Errorf("libseccomp: %w", err)
	}
	names := slices.Clone(p.Architectures)
	for _, m := range p.ArchMap {
		if a, err := libArch(m.Architecture); err == nil && a == native {
			names = append(names, m.SubArchitectures...)
		}
	}
	for _, name := range names {
		a, err := libArch(name)
		if err != nil {
			return nil, err
		}
		if a != native && !slices.Contains(others, a) {
			others = append(others, a)
		}
	}
	return others, nil
}

// retarget turns a filter for this machine's architecture into one for goarch by
// replacing the AUDIT_ARCH value. The call numbers are those of goarch already:
// libseccomp, which could translate them, does not know the newest calls.
func (f Filter) retarget(goarch string) Filter {
	for i := range f {
		if f[i].Code == opEq && f[i].K == AuditArch(runtime.GOARCH) {
			f[i].K = AuditArch(goarch)
		}
	}
	return f
}

func libArch(name string) (lib.ScmpArch, error) {
	a, err := lib.GetArchFromString(strings.ToLower(strings.TrimPrefix(name, "SCMP_ARCH_")))
	if name == "SCMP_ARCH_X86_64" {
		return lib.ArchAMD64, nil
	}
	if name == "SCMP_ARCH_AARCH64" {
		return lib.ArchARM64, nil
	}
	if err != nil {
		return a, fmt.Errorf("seccomp policy: unknown architecture %q", name)
	}
	return a, nil
}

func (p *Policy) add(f *lib.ScmpFilter, r Rule, goarch string, foreign bool) error {
	act := toAction(r.Action, r.ErrnoRet)
	if act == toAction(p.DefaultAction, p.DefaultErrnoRet) {
		return nil // libseccomp refuses rules that repeat the default
	}
	for _, name := range r.names() {
		call, ok := number(name, goarch, foreign)
		if !ok {
			continue
		}
		for _, args := range alternatives(r.Args) {
			conds, err := conditions(args)
			if err == nil {
				err = f.AddRuleConditional(call, libAction(act), conds)
			}
			if err != nil {
				return fmt.Errorf("libseccomp: rule for %s: %w", name, err)
			}
		}
	}
	return nil
}

// number looks a name up in libseccomp, which also knows the calls of 32-bit
// architectures, and then in the table, which has newer calls.
func number(name, goarch string, foreign bool) (lib.ScmpSyscall, bool) {
	if goarch == runtime.GOARCH {
		call, err := lib.GetSyscallFromName(name)
		if err == nil || foreign {
			return call, err == nil
		}
	}
	nr, ok := Number(goarch, name)
	return lib.ScmpSyscall(nr), ok
}

func conditions(args []Arg) ([]lib.ScmpCondition, error) {
	ops := map[Op]lib.ScmpCompareOp{
		OpEqual: lib.CompareEqual, OpNotEqual: lib.CompareNotEqual,
		OpLess: lib.CompareLess, OpLessEq: lib.CompareLessOrEqual,
		OpGreater: lib.CompareGreater, OpGreaterEq: lib.CompareGreaterEqual,
		OpMasked: lib.CompareMaskedEqual,
	}
	var out []lib.ScmpCondition
	for _, a := range args {
		values := []uint64{a.Value}
		if a.Op == OpMasked {
			values = append(values, a.ValueTwo)
		}
		c, err := lib.MakeCondition(a.Index, ops[a.Op], values...)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func libAction(a Action) lib.ScmpAction {
	switch a.Kind {
	case Errno:
		return lib.ActErrno.SetReturnCode(int16(a.Errno))
	case KillProcess:
		return lib.ActKillProcess
	case KillThread:
		return lib.ActKillThread
	case Trap:
		return lib.ActTrap
	case Log:
		return lib.ActLog
	}
	return lib.ActAllow
}

// read exports the filter through a file: libseccomp writes only to descriptors.
func read(f *lib.ScmpFilter) (Filter, error) {
	file, err := os.CreateTemp("", "tegmen-bpf-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := f.ExportBPF(file); err != nil {
		return nil, fmt.Errorf("libseccomp: %w", err)
	}
	b, err := os.ReadFile(file.Name())
	if err != nil {
		return nil, err
	}
	return parse(b)
}
