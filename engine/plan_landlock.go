package engine

import (
	"fmt"
	"strings"

	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// decideLandlock sets up the second wall: should a mount or a descriptor of the
// host ever be reached, files are still only as the mount table says.
func (pl *planner) decideLandlock() {
	abi := pl.host.Landlock
	switch {
	case abi == 0:
		pl.plan.landlock = "none: this kernel has none or has it disabled (first kernel 5.13)"
		return
	case abi < ns.FirstRefer:
		pl.plan.landlock = "none: with this kernel's, files could not be moved between directories (first kernel 5.19)"
		return
	}
	pl.config.Landlock = &ns.Ruleset{ABI: abi, Rules: ns.GrantTable(pl.config.Table), TCP: true}
	pl.plan.landlock = fmt.Sprintf("version %d: files as mounted", abi)
	if lacks := ns.LandlockLacks(abi); len(lacks) > 0 {
		pl.plan.landlock += "; it lacks " + strings.Join(lacks, ", ")
	}
}

// decideLandlockOnly turns the mount table into rights to the host's own files.
func (pl *planner) decideLandlockOnly() {
	grants := []ns.Grant{{Path: "/proc", Access: ns.Read}}
	for _, name := range hostEtc {
		if src, err := pl.lookup(name); err == nil {
			grants = append(grants, ns.GrantSource(src, ns.Read))
		}
	}
	for _, n := range pl.config.Table {
		switch {
		case n.Kind == rootfs.Bind && n.ReadOnly:
			grants = append(grants, ns.GrantSource(n.Source, ns.Read))
		case n.Kind == rootfs.Bind:
			grants = append(grants, ns.GrantSource(n.Source, ns.Read|ns.Change|ns.Make))
		case n.Kind == rootfs.Device:
			grants = append(grants, ns.GrantSource(n.Source, ns.Read|ns.Change))
		}
	}
	pl.config.Landlock = &ns.Ruleset{ABI: pl.host.Landlock, Rules: grants, Scope: ns.ScopeAbstract | ns.ScopeSignal}
	pl.plan.landlock = fmt.Sprintf("version %d: instead of namespaces", pl.host.Landlock)
}

// hostEtc is what else of /etc programs read: accounts and names, which a view of
// the sandbox's own would have generated, and what Debian's Python starts with.
var hostEtc = []string{
	"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf",
	"/etc/python3.8", "/etc/python3.9", "/etc/python3.10", "/etc/python3.11",
	"/etc/python3.12", "/etc/python3.13", "/etc/python3.14",
}
