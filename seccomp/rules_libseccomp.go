//go:build libseccomp && cgo && linux

package seccomp

import (
	"fmt"
	"slices"
	"syscall"
)

// policies returns the layers of the profile for libseccomp: one decides by the call,
// the others by arguments. The strictest decision wins.
func (p *Profile) policies() []*Policy {
	none := uint32(enosys)
	byCall := &Policy{DefaultAction: Errno, DefaultErrnoRet: &none}
	for _, g := range p.Decided() {
		r := Rule{Action: g.Action.Kind, Names: g.Calls}
		if g.Action.Kind == Errno {
			e := uint32(g.Action.Errno)
			r.ErrnoRet = &e
		}
		byCall.Syscalls = append(byCall.Syscalls, r)
	}
	byArgs := &Policy{DefaultAction: Allow}
	for _, r := range p.Refusals {
		e := uint32(r.Action.Errno)
		for _, args := range r.When {
			byArgs.Syscalls = append(byArgs.Syscalls,
				Rule{Names: []string{r.Call}, Action: r.Action.Kind, ErrnoRet: &e, Args: args})
		}
	}
	layers := []*Policy{byCall, byArgs}
	for _, r := range p.Refusals {
		if r.Unless != nil {
			layers = append(layers, p.unless(r))
		}
	}
	return layers
}

// unless returns a layer that allows everything except r.Call, and r.Call only with the
// arguments in r.Unless.
func (p *Profile) unless(r Refusal) *Policy {
	e := uint32(r.Action.Errno)
	layer := &Policy{DefaultAction: Errno, DefaultErrnoRet: &e}
	rest := slices.DeleteFunc(callsOf(p.Groups), func(c string) bool { return c == r.Call })
	slices.Sort(rest)
	layer.Syscalls = append(layer.Syscalls, Rule{Names: slices.Compact(rest), Action: Allow})
	for _, args := range r.Unless {
		layer.Syscalls = append(layer.Syscalls, Rule{Names: []string{r.Call}, Action: Allow, Args: args})
	}
	return layer
}

// applies reports whether a rule applies to guests on a machine.
func (r Rule) applies(goarch, kernel string) bool {
	if f := r.Includes; f != nil {
		if len(f.Caps) > 0 || len(f.Arches) > 0 && !slices.Contains(f.Arches, goarch) ||
			f.MinKernel != "" && !atLeast(kernel, f.MinKernel) {
			return false
		}
	}
	if f := r.Excludes; f != nil { // guests have no capabilities, so Caps excludes none
		if slices.Contains(f.Arches, goarch) || f.MinKernel != "" && atLeast(kernel, f.MinKernel) {
			return false
		}
	}
	return true
}

// atLeast reports whether a kernel release is first or later, by its first two numbers.
func atLeast(release, first string) bool {
	var a, b [2]int
	fmt.Sscanf(release, "%d.%d", &a[0], &a[1])
	fmt.Sscanf(first, "%d.%d", &b[0], &b[1])
	return slices.Compare(a[:], b[:]) >= 0
}

// toAction returns the action of a rule with its errno.
func toAction(k Kind, errno *uint32) Action {
	a := Action{Kind: k}
	if k == "SCMP_ACT_KILL" {
		a.Kind = KillThread
	}
	if k == Errno {
		a.Errno = eperm
		if errno != nil {
			a.Errno = syscall.Errno(*errno)
		}
	}
	return a
}

// alternatives returns the lists of comparisons that a rule stands for. As in docker,
// comparisons of different arguments must all hold, and if several compare one
// argument, any of the rule's comparisons may.
func alternatives(args []Arg) [][]Arg {
	seen := make(map[uint]bool)
	for _, a := range args {
		if seen[a.Index] {
			var each [][]Arg
			for _, a := range args {
				each = append(each, []Arg{a})
			}
			return each
		}
		seen[a.Index] = true
	}
	return [][]Arg{args}
}
