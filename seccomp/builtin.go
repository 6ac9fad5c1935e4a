package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoCompiler is what Compile returns where libseccomp is not linked.
var ErrNoCompiler = errors.New("this build has no compiler for seccomp policies: install libseccomp-dev and build with CGO_ENABLED=1 go build -tags libseccomp; the built-in profiles need none")

// Builtin is the filter of a built-in profile for a GOARCH.
func Builtin(profile, goarch string) (Filter, error) {
	b, err := builtin.ReadFile("builtin/" + profile + "_" + goarch + ".bpf")
	switch {
	case err == nil:
		return parse(b)
	case Lookup(profile) == nil: // which takes longer than reading one
		return nil, fmt.Errorf("no seccomp profile %q; there are %s", profile, strings.Join(Names(), ", "))
	}
	return nil, fmt.Errorf("no seccomp profile for %s", goarch)
}

// And is a filter that allows what both f and a built-in profile allow.
func (f Filter) And(profile, goarch string) (Filter, error) {
	other, err := Builtin(profile, goarch)
	if err != nil {
		return nil, err
	}
	return lower(f.then(other))
}

// then has what f allows decided by other.
func (f Filter) then(other Filter) Filter {
	out := slices.Clone(f)
	for pc := range out {
		if out[pc].Code == opRet && action(out[pc].K).Kind == Allow {
			out[pc] = Insn{Code: opJump, K: uint32(len(out) - pc - 1)}
		}
	}
	return append(out, other...)
}

// NoExec is a filter that refuses every execve but one whose fourth argument is
// the cookie, and execveat likewise with its sixth: arguments that the kernel
// does not look at. Who does not know the cookie can execute nothing. It goes with
// another filter, that refuses foreign architectures.
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
