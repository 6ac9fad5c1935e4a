package seccomp

import (
	"slices"
	"strings"
	"syscall"
)

// A Profile is a built-in policy with its reasons.
type Profile struct {
	Name, About string
	// Groups decide by the call alone. A call in none is ENOSYS: it is newer than
	// the profile, and then programs do without.
	Groups []Group
	// Refusals decide by its arguments, on what Groups allow.
	Refusals []Refusal
}

// Group is some system calls that are treated alike.
type Group struct {
	Name, Why string
	Action    Action
	Calls     []string
}

// Refusal is a call that is allowed but not with some arguments.
type Refusal struct {
	Call, Why string
	Action    Action
	When      [][]Arg // any of these, in each of which all have to hold
	Unless    [][]Arg // instead of When: none of these
}

// Lookup returns a built-in profile, or nil.
func Lookup(name string) *Profile {
	for _, p := range profiles() {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

// Names lists the built-in profiles.
func Names() (names []string) {
	for _, p := range profiles() {
		names = append(names, p.Name)
	}
	return names
}

func profiles() []Profile {
	allow, refused := allowed(), refusals()
	return []Profile{
		{
			Name: "default", About: "what ordinary programs need",
			Groups:   slices.Concat(allow, denied()),
			Refusals: refused,
		},
		{
			Name: "debug", About: "default, and what debuggers need on processes of the same command: gdb, strace, leak sanitizers",
			Groups:   slices.Concat(debugging(), allow, denied()),
			Refusals: refused,
		},
		{
			Name: "shared", About: "default for where there are no namespaces: nothing by which what is the host's could be reached",
			Groups:   slices.Concat(shared(allow), allow, denied()),
			Refusals: slices.Concat(refused, sharedRefusals()),
		},
		{
			Name: "strict", About: "computing on files and pipes: no sockets, no IPC, no new kernel objects beyond memory, files and processes",
			Groups:   slices.Concat(strict(), []Group{{Name: "not needed", Action: refuse(eperm), Why: "a program that only computes does without", Calls: callsOf(allow)}}, denied()),
			Refusals: refused,
		},
	}
}

func refuse(e syscall.Errno) Action { return Action{Kind: Errno, Errno: e} }

func words(s string) []string { return strings.Fields(s) }

// find returns the calls of a group.
func find(groups []Group, name string) []string {
	i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == name })
	return groups[i].Calls
}

// callsOf lists the calls of all groups.
func callsOf(groups []Group) (all []string) {
	for _, g := range groups {
		all = append(all, g.Calls...)
	}
	return all
}

// group returns the group that decides on a call: the first that has it.
func (p *Profile) group(call string) *Group {
	for i := range p.Groups {
		if slices.Contains(p.Groups[i].Calls, call) {
			return &p.Groups[i]
		}
	}
	return nil
}

// Decided lists the groups, each with the calls only that it decides on.
func (p *Profile) Decided() (groups []Group) {
	decided := make(map[string]bool)
	for _, g := range p.Groups {
		g.Calls = slices.DeleteFunc(slices.Clone(g.Calls), func(c string) bool { return decided[c] })
		for _, c := range g.Calls {
			decided[c] = true
		}
		if len(g.Calls) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// Explain says what happens to a call, and why.
func (p *Profile) Explain(call string) (action Action, why string, refusals []Refusal) {
	g := p.group(call)
	if g == nil {
		return refuse(enosys), "newer than the profile, or unknown: programs do without", nil
	}
	for _, r := range p.Refusals {
		if r.Call == call && g.Action.Kind == Allow {
			refusals = append(refusals, r)
		}
	}
	return g.Action, g.Name + ": " + g.Why, refusals
}

// policies are the layers of the profile, for libseccomp: what is allowed by
// the call, and what of it is refused by its arguments. The stricter one of
// their decisions counts.
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
			byArgs.Syscalls = append(byArgs.Syscalls, Rule{Names: []string{r.Call}, Action: r.Action.Kind, ErrnoRet: &e, Args: args})
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

// unless is a layer that allows what others do, but of one call only the
// arguments that a refusal leaves.
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

// Conditions on arguments. The kernel takes most of them as 32 bits, so a
// comparison looks at the lower 32: garbage above must not get around it.

func masked(index uint, mask, value uint64) Arg {
	return Arg{Index: index, Value: mask, ValueTwo: value, Op: OpMasked}
}

func is32(index uint, value uint32) Arg { return masked(index, 0xffffffff, uint64(value)) }

// anyBit is a condition for each bit: any of them set.
func anyBit(index uint, mask uint64) (when [][]Arg) {
	for b := uint64(1); b != 0 && b <= mask; b <<= 1 {
		if mask&b != 0 {
			when = append(when, []Arg{masked(index, b, b)})
		}
	}
	return when
}

// othersOf is any value of a few bits but the given ones.
func othersOf(index uint, mask uint64, but ...uint64) (when [][]Arg) {
	for v := uint64(0); v <= mask; v++ {
		if !slices.Contains(but, v) {
			when = append(when, []Arg{masked(index, mask, v)})
		}
	}
	return when
}

// others is any value but the given ones, which are small.
func others(index uint, but []uint64, and ...Arg) (when [][]Arg) {
	last := slices.Max(but)
	for v := uint64(0); v < last; v++ {
		if !slices.Contains(but, v) {
			when = append(when, append([]Arg{{Index: index, Value: v, Op: OpEqual}}, and...))
		}
	}
	return append(when, append([]Arg{{Index: index, Value: last, Op: OpGreater}}, and...))
}
