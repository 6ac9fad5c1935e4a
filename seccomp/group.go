package seccomp

import (
	"slices"
	"strings"
	"syscall"
)

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
