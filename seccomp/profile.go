package seccomp

import (
	"slices"
	"strings"
	"syscall"
)

// A Profile is a built-in policy with its reasons.
type Profile struct {
	Name  string // as Lookup takes it
	About string // what the profile is for, in a phrase
	// Groups decide by the call alone; the first group that lists a call wins. A call
	// in no group fails with ENOSYS: it is newer than the profile, and programs fall
	// back to older calls.
	Groups []Group
	// Refusals decide by arguments, on calls that Groups allow.
	Refusals []Refusal
}

// Group is a set of system calls with one decision.
type Group struct {
	Name   string   // what the calls have in common
	Why    string   // the reason for Action
	Action Action   // what happens to the calls
	Calls  []string // names of system calls
}

// Refusal refuses an allowed call with certain arguments. Exactly one of When and
// Unless is set.
type Refusal struct {
	Call   string  // the name of the system call
	Why    string  // the reason
	Action Action  // what happens instead
	When   [][]Arg // refused if all comparisons in any of these lists hold
	Unless [][]Arg // refused unless all comparisons in one of these lists hold
}

// Lookup returns a copy of a built-in profile, or nil if the name is unknown.
func Lookup(name string) *Profile {
	for _, p := range profiles() {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

// Names lists the names of the built-in profiles, the default one first.
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
			Name: "default", About: "What ordinary programs need",
			Groups:   slices.Concat(allow, denied()),
			Refusals: refused,
		},
		{
			Name: "debug",
			About: "Like default, plus what gdb, strace and leak sanitizers need to inspect processes of the same " +
				"command",
			Groups:   slices.Concat(debugging(), allow, denied()),
			Refusals: refused,
		},
		{
			Name: "shared",
			About: "Like default, for sandboxes without namespaces: less the calls that would reach sockets, IPC, " +
				"files or processes of the host",
			Groups:   slices.Concat(shared(allow), allow, denied()),
			Refusals: slices.Concat(refused, sharedRefusals()),
		},
		{
			Name: "strict",
			About: "Computing on files and pipes: no sockets, no IPC, no new kernel objects beyond memory, files and " +
				"processes",
			Groups: slices.Concat(strict(), []Group{{
				Name: "not needed", Action: refuse(eperm), Why: "a program that only computes does not need these",
				Calls: callsOf(allow),
			}}, denied()),
			Refusals: refused,
		},
	}
}

func refuse(e syscall.Errno) Action { return Action{Kind: Errno, Errno: e} }

// group builds a Group from a list of calls separated by white space.
func group(a Action, name, why, calls string) Group {
	return Group{Name: name, Why: why, Action: a, Calls: words(calls)}
}

func words(s string) []string { return strings.Fields(s) }

// find returns the calls of the group called name.
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

// group returns the group that decides on a call, or nil.
func (p *Profile) group(call string) *Group {
	for i := range p.Groups {
		if slices.Contains(p.Groups[i].Calls, call) {
			return &p.Groups[i]
		}
	}
	return nil
}

// Decided lists the groups with only the calls that each decides on, leaving out
// groups without any.
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

// Explain returns the decision on a call, the reason, and the refusals by argument
// that apply if it is allowed.
func (p *Profile) Explain(call string) (action Action, why string, refusals []Refusal) {
	g := p.group(call)
	if g == nil {
		return refuse(enosys), "newer than the profile, or unknown: programs fall back to older calls", nil
	}
	for _, r := range p.Refusals {
		if r.Call == call && g.Action.Kind == Allow {
			refusals = append(refusals, r)
		}
	}
	return g.Action, g.Name + ": " + g.Why, refusals
}

// Conditions on arguments. The kernel reads most of them as 32 bits, so a comparison
// looks at the lower 32: a guest must not evade it by setting higher bits.

func masked(index uint, mask, value uint64) Arg {
	return Arg{Index: index, Value: mask, ValueTwo: value, Op: OpMasked}
}

func is32(index uint, value uint32) Arg { return masked(index, 0xffffffff, uint64(value)) }

// anyBit matches if any bit of mask is set: one condition for each.
func anyBit(index uint, mask uint64) (when [][]Arg) {
	for b := uint64(1); b != 0 && b <= mask; b <<= 1 {
		if mask&b != 0 {
			when = append(when, []Arg{masked(index, b, b)})
		}
	}
	return when
}

// othersOf matches every value of the bits in mask, which are few and low, except
// those in but.
func othersOf(index uint, mask uint64, but ...uint64) (when [][]Arg) {
	for v := uint64(0); v <= mask; v++ {
		if !slices.Contains(but, v) {
			when = append(when, []Arg{masked(index, mask, v)})
		}
	}
	return when
}

// others matches every value except those in but, which are small.
func others(index uint, but []uint64, and ...Arg) (when [][]Arg) {
	last := slices.Max(but)
	for v := uint64(0); v < last; v++ {
		if !slices.Contains(but, v) {
			when = append(when, append([]Arg{{Index: index, Value: v, Op: OpEqual}}, and...))
		}
	}
	return append(when, append([]Arg{{Index: index, Value: last, Op: OpGreater}}, and...))
}
