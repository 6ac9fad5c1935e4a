//go:build linux && (amd64 || arm64)

package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// landlock is what a Plan decided about it.
type landlock struct {
	note  string
	rules *ns.Ruleset // nil: none
}

// asGuest calls f as who guests are on the host, to file systems: what a guest has
// a say in leads f nowhere that the guest cannot go.
func asGuest(h Host, id identity, f func() error) error {
	if !h.Become {
		return f()
	}
	return launch.As(launch.Identity{UID: id.hostUID, GID: id.hostGID}, f)
}

// in names a sandbox's private directory in the rules.
func (l landlock) in(put func(string) string) landlock {
	if l.rules == nil {
		return l
	}
	rules := *l.rules
	rules.Rules = slices.Clone(l.rules.Rules)
	for i := range rules.Rules {
		rules.Rules[i].Path = put(rules.Rules[i].Path)
	}
	l.rules = &rules
	return l
}

func startCalls() []string { return launch.GateCalls }

// decideLandlock sets up the second wall: should a mount or a descriptor of the
// host ever be reached, files are still only as the mount table says.
func (p *Plan) decideLandlock(h Host) {
	switch {
	case h.Landlock == 0:
		p.landlock.note = "none: this kernel has none or has it disabled (first kernel 5.13)"
		return
	case h.Landlock < ns.FirstRefer:
		p.landlock.note = "none: with this kernel's, files could not be moved between directories (first kernel 5.19)"
		return
	}
	p.landlock.rules = &ns.Ruleset{ABI: h.Landlock, Rules: ns.GrantTable(p.table), TCP: true}
	p.landlock.note = fmt.Sprintf("version %d: files as mounted", h.Landlock)
	if lacks := ns.LandlockLacks(h.Landlock); len(lacks) > 0 {
		p.landlock.note += "; it lacks " + strings.Join(lacks, ", ")
	}
}

// filters are the seccomp filters of one command.
func (p *Plan) filters(goarch string) (f setup.Filters, err error) {
	if p.filter == nil {
		return f, nil
	}
	main := p.filter
	if f.Audit = p.Spec.Seccomp.Audit; f.Audit {
		main = main.Audited()
	}
	if p.Spec.Seccomp.NoExec {
		if f.Cookie, err = launch.NewCookie(); err != nil {
			return f, err
		}
		f.Programs = append(f.Programs, seccomp.NoExec(goarch, f.Cookie.Arg()).Bytes())
	}
	f.Programs = append(f.Programs, main.Bytes())
	return f, nil
}
