package seccomp

import (
	"slices"
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
