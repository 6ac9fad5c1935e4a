package ns_test

import (
	"testing"

	"github.com/tegmen-dev/tegmen/ns"
)

// What a domain controls grows with the version, and is what the ruleset asks for.
func TestHandled(t *testing.T) {
	const both = ns.ScopeAbstract | ns.ScopeSignal
	for _, c := range []struct {
		name       string
		rules      ns.Ruleset
		refer, tcp bool
		scope      uint64
	}{
		{"no Landlock", ns.Ruleset{Scope: both}, false, false, 0},
		{"before refer", ns.Ruleset{ABI: ns.FirstRefer - 1, Scope: both}, false, false, 0},
		{"with refer", ns.Ruleset{ABI: ns.FirstRefer, Scope: both}, true, false, 0},
		{"with ports", ns.Ruleset{ABI: 4, Scope: both}, true, true, 0},
		{"with scopes", ns.Ruleset{ABI: ns.FirstScope, Scope: both}, true, true, both},
		{"newer than known", ns.Ruleset{ABI: 1000, Scope: ns.ScopeSignal}, true, true, ns.ScopeSignal},
		{"ports allowed", ns.Ruleset{ABI: ns.FirstScope, TCP: true}, true, false, 0},
		{"scopes only", ns.Ruleset{ABI: ns.FirstScope, TCP: true, Scope: both, ScopeOnly: true}, true, false, both},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, tcp, scope := c.rules.Handled()
			if files&ns.Refer != 0 != c.refer || tcp != 0 != c.tcp || scope != c.scope {
				t.Errorf("files %x, TCP %x, scope %x", uint64(files), tcp, scope)
			}
		})
	}
}

// A domain that only scopes signals takes no right to a file away: it handles the
// one right that it would otherwise refuse, and grants it everywhere.
func TestScopeOnlyGrantsAllFiles(t *testing.T) {
	r := ns.Ruleset{ABI: ns.FirstScope, ScopeOnly: true, Rules: []ns.Grant{{Path: "/usr", Access: ns.Read}}}
	if files, _, _ := r.Handled(); files != ns.Refer {
		t.Errorf("handles %x, want refer alone", uint64(files))
	}
	if g := r.Grants(); len(g) != 1 || g[0] != (ns.Grant{Path: "/", Access: ns.Refer}) {
		t.Errorf("grants %+v, want refer on /", g)
	}
}
