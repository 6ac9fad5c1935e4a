package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoCompiler is returned by Compile in a build without libseccomp.
var ErrNoCompiler = errors.New("this build has no compiler for seccomp policies: install libseccomp-dev and " +
	"build with CGO_ENABLED=1 go build -tags libseccomp; the built-in profiles need none")

// Builtin returns the filter of a built-in profile (see Names) for a GOARCH,
// "amd64" or "arm64". The caller owns it.
func Builtin(profile, goarch string) (Filter, error) {
	b, err := builtin.ReadFile("builtin/" + profile + "_" + goarch + ".bpf")
	switch {
	case err == nil:
		return parse(b)
	case Lookup(profile) == nil: // slower than reading a file, so only on failure
		return nil, fmt.Errorf("no seccomp profile %q: want one of %s", profile, strings.Join(Names(), ", "))
	}
	return nil, fmt.Errorf("no seccomp profile for %s", goarch)
}

// And returns a filter that allows only what both f and a built-in profile for
// the GOARCH allow. The profile decides on the calls that f allows.
func (f Filter) And(profile, goarch string) (Filter, error) {
	other, err := Builtin(profile, goarch)
	if err != nil {
		return nil, err
	}
	return lower(f.then(other))
}

// then returns f with each "allow" replaced by a jump to other.
func (f Filter) then(other Filter) Filter {
	out := slices.Clone(f)
	for pc := range out {
		if out[pc].Code == opRet && action(out[pc].K).Kind == Allow {
			out[pc] = Insn{Code: opJump, K: uint32(len(out) - pc - 1)}
		}
	}
	return append(out, other...)
}

// NoExec returns a filter that refuses, with EPERM, every execve whose fourth
// argument is not the cookie, and every execveat whose sixth argument is not: the
// kernel ignores these arguments, so only a program that knows the cookie can
// execute another. The cookie must be random and secret. NoExec does not look at
// the architecture of a call: install it beside a filter that refuses foreign ones.
func NoExec(goarch string, cookie uint64) Filter {
	execve, _ := Number(goarch, "execve")
	execveat, _ := Number(goarch, "execveat")
	const fourth, sixth = 16 + 3*8, 16 + 5*8
	low, high := uint32(cookie), uint32(cookie>>32)
	return Filter{
		{Code: opLoad, K: 0},
		{Code: opEq, K: execve, JT: 2},
		{Code: opEq, K: execveat, JT: 5},
		{Code: opRet, K: Action{Kind: Allow}.ret()},
		{Code: opLoad, K: fourth},
		{Code: opEq, K: low, JF: 6},
		{Code: opLoad, K: fourth + 4},
		{Code: opEq, K: high, JT: 5, JF: 4},
		{Code: opLoad, K: sixth},
		{Code: opEq, K: low, JF: 2},
		{Code: opLoad, K: sixth + 4},
		{Code: opEq, K: high, JT: 1},
		{Code: opRet, K: refuse(eperm).ret()},
		{Code: opRet, K: Action{Kind: Allow}.ret()},
	}
}

// setID are the calls that give a file a mode, and which argument that is. Of open and
// openat it counts if the argument before it has one of the flags that make a file.
var setID = []struct {
	name string
	mode uint32
	open bool
}{
	{"chmod", 1, false}, {"fchmod", 1, false}, {"fchmodat", 2, false}, {"fchmodat2", 2, false}, {"mknod", 1, false},
	{"mknodat", 2, false}, {"mkdir", 1, false}, {"mkdirat", 2, false}, {"creat", 1, false}, {"open", 2, true},
	{"openat", 3, true},
}

// NoSetID returns a filter that refuses, with EPERM, every call that would give a file
// a set-user-ID or set-group-ID bit, and openat2 as if the kernel did not know it
// (ENOSYS), since its mode is in memory. A guest that writes to files of root's by an
// idmapped mount could otherwise leave a program that runs as root (seen with
// mount_setattr(2) of Linux 6.18). Like NoExec, it needs another filter beside it.
func NoSetID(goarch string) Filter {
	const (
		bits    = 0o6000
		creates = 0x40 | 0x400000 // O_CREAT, and the bit of its own that O_TMPFILE has
	)
	arg := func(n uint32) uint32 { return 16 + n*8 }
	f := Filter{{Code: opLoad, K: 0}}
	if openat2, ok := Number(goarch, "openat2"); ok {
		f = append(f, Insn{Code: opEq, K: openat2, JF: 1}, Insn{Code: opRet, K: refuse(enosys).ret()})
	}
	for _, c := range setID {
		nr, ok := Number(goarch, c.name)
		if !ok {
			continue // arm64 has only the newer ones
		}
		var check Filter
		if c.open {
			check = Filter{{Code: opLoad, K: arg(c.mode - 1)}, {Code: opSet, K: creates, JT: 1},
				{Code: opRet, K: Action{Kind: Allow}.ret()}}
		}
		check = append(check, Insn{Code: opLoad, K: arg(c.mode)}, Insn{Code: opSet, K: bits, JT: 1},
			Insn{Code: opRet, K: Action{Kind: Allow}.ret()}, Insn{Code: opRet, K: refuse(eperm).ret()})
		f = append(f, Insn{Code: opEq, K: nr, JF: uint8(len(check))})
		f = append(f, check...)
	}
	return append(f, Insn{Code: opRet, K: Action{Kind: Allow}.ret()})
}
