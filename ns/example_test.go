package ns_test

import (
	"fmt"

	"github.com/tegmen-dev/tegmen/ns"
)

// A ruleset leaves out what the kernel's version of Landlock cannot confine;
// LandlockLacks names it.
func Example() {
	rules := ns.Ruleset{
		ABI: 6, // of Linux 6.12; LandlockABI asks the running kernel
		Rules: []ns.Grant{
			{Path: "/usr", Access: ns.Read},
			{Path: "/etc/passwd", Access: ns.Read | ns.Make, File: true},
			{Path: "/home/ann/src", Access: ns.Read | ns.Change | ns.Make | ns.ResolveUnix},
		},
		Scope: ns.ScopeSignal,
	}
	_, tcp, scope := rules.Handled()
	fmt.Println("TCP ports are refused:", tcp != 0, "- signals stay inside:", scope == ns.ScopeSignal)
	for _, g := range rules.Grants() {
		fmt.Println(g.Path, "create files:", g.Access&ns.Make != 0, "connect to sockets:", g.Access&ns.ResolveUnix != 0)
	}
	fmt.Println("not confined:", ns.LandlockLacks(rules.ABI))
	// Output:
	// TCP ports are refused: true - signals stay inside: true
	// /usr create files: false connect to sockets: false
	// /etc/passwd create files: false connect to sockets: false
	// /home/ann/src create files: true connect to sockets: false
	// not confined: [sockets in files (7.1)]
}
