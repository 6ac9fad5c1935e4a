package ns

import "github.com/tegmen-dev/tegmen/rootfs"

// Access is a set of rights to files: LANDLOCK_ACCESS_FS_… of landlock(7). The kernel
// has the same numbers on every architecture. They are defined here so that a ruleset
// can be made on any system.
type Access uint64

// The rights that this package grants, in groups.
const (
	// Read allows looking at files and directories, and executing files.
	Read = execute | readFile | readDir
	// Change allows writing to files that exist.
	Change = writeFile | truncate | ioctlDev
	// Make allows creating, moving and removing files, except device nodes: no
	// sandbox may create those.
	Make = removeDir | removeFile | makeDir | makeReg | makeSock | makeFifo | makeSym | refer
	// ResolveUnix allows connecting to Unix sockets that have a path.
	ResolveUnix Access = 1 << 16
)

const (
	execute Access = 1 << iota
	writeFile
	readFile
	readDir
	removeDir
	removeFile
	makeChar
	makeDir
	makeReg
	makeSock
	makeFifo
	makeBlock
	makeSym
	refer
	truncate
	ioctlDev
)

// OfFiles are the rights that apply to files; the others apply to directories only.
const OfFiles = execute | readFile | Change

// Refer is the right to move and link files between directories. A domain that
// does not handle it refuses it.
const Refer = refer

// The scopes of a domain (LANDLOCK_SCOPE_…): what its processes cannot do to
// processes outside of it.
const (
	ScopeAbstract uint64 = 1 << 0 // connect to abstract Unix sockets
	ScopeSignal   uint64 = 1 << 1 // send signals
)

const (
	bindTCP    uint64 = 1 << 0 // LANDLOCK_ACCESS_NET_BIND_TCP
	connectTCP uint64 = 1 << 1 // LANDLOCK_ACCESS_NET_CONNECT_TCP
)

// landlockABI lists what each version of Landlock added.
var landlockABI = []struct {
	kernel, adds string
	fs           Access
	net, scope   uint64
}{
	1: {kernel: "5.13", adds: "rights to files", fs: 1<<13 - 1},
	2: {kernel: "5.19", adds: "moving files between directories", fs: refer},
	3: {kernel: "6.2", adds: "truncation", fs: truncate},
	4: {kernel: "6.7", adds: "TCP ports", net: bindTCP | connectTCP},
	5: {kernel: "6.10", adds: "ioctl on devices", fs: ioctlDev},
	6: {kernel: "6.12", adds: "signals and abstract sockets", scope: ScopeAbstract | ScopeSignal},
	7: {kernel: "6.15", adds: "control of audit logs"}, // nothing to confine
	8: {kernel: "7.0", adds: "all threads at once"},    // nothing to confine
	9: {kernel: "7.1", adds: "sockets in files", fs: ResolveUnix},
}

const (
	// FirstRefer is the first version that can allow files to be moved between
	// directories: with older ones every such move fails.
	FirstRefer = 2
	// FirstScope is the first version that can confine commands without namespaces:
	// it keeps their signals inside, so one signal ends their whole tree and
	// nothing else.
	FirstScope = 6
)

// LandlockLacks lists what a version of Landlock cannot confine but a newer one can,
// each with its first kernel. Version 0 lacks everything.
func LandlockLacks(abi int) (lacks []string) {
	for v := max(abi+1, 1); v < len(landlockABI); v++ {
		if a := landlockABI[v]; a.fs|Access(a.net)|Access(a.scope) != 0 {
			lacks = append(lacks, a.adds+" ("+a.kernel+")")
		}
	}
	return lacks
}

// Ruleset is a Landlock ruleset: what is not granted is refused.
type Ruleset struct {
	ABI   int     // the kernel's version of Landlock, from LandlockABI; newer rights are left out
	Rules []Grant // nil grants nothing
	TCP   bool    // allow binding and connecting to TCP ports
	Scope uint64  // ScopeAbstract, ScopeSignal: what to keep inside, as far as the kernel can

	// ScopeOnly ignores Rules and does not restrict files: for a process that must
	// only be kept from signalling others.
	ScopeOnly bool
}

// Handled returns what a domain made from the ruleset controls: rights to files,
// rights to TCP ports, and scopes (struct landlock_ruleset_attr).
func (r Ruleset) Handled() (files Access, tcp, scope uint64) {
	for v := 1; v <= min(r.ABI, len(landlockABI)-1); v++ {
		a := landlockABI[v]
		files, tcp, scope = files|a.fs, tcp|a.net, scope|a.scope
	}
	if r.TCP {
		tcp = 0
	}
	if r.ScopeOnly {
		files = Refer // the one right that a domain refuses unless it handles it
	}
	return files, tcp, scope & r.Scope
}

// Grants returns the rules to add. For a file it leaves out the rights of directories:
// the kernel refuses such a rule.
func (r Ruleset) Grants() (list []Grant) {
	files, _, _ := r.Handled()
	rules := r.Rules
	if r.ScopeOnly {
		rules = []Grant{{Path: "/", Access: Refer}}
	}
	for _, g := range rules {
		if g.File {
			g.Access &= OfFiles
		}
		if g.Access &= files; g.Access != 0 {
			list = append(list, g)
		}
	}
	return list
}

// Grant gives rights to a path and everything beneath it, if the path exists.
type Grant struct {
	Path   string // absolute; links in it are not followed
	Access Access // the rights; 0 grants none
	File   bool   // the path is a file, not a directory
}

// GrantSource grants rights to a file or directory of the host.
func GrantSource(s rootfs.Source, a Access) Grant { return Grant{s.Path, a, !s.Dir} }

// GrantTable derives rights from a mount table: writable mounts may be written to,
// everything else may be read. Files then stay protected even if a guest reaches a
// mount in another way.
func GrantTable(t rootfs.Table) []Grant {
	grants := []Grant{{Path: "/", Access: Read}}
	for _, n := range t {
		switch {
		case writable(n):
			grants = append(grants, Grant{Path: n.Path, Access: Read | Change | Make | ResolveUnix})
		case n.Kind == rootfs.Bind && !n.ReadOnly:
			// Not ResolveUnix: a socket in a host's directory leads to the host.
			grants = append(grants, Grant{n.Path, Read | Change | Make, !n.Source.Dir})
		case n.Kind == rootfs.Proc || n.Path == "/dev":
			grants = append(grants, Grant{Path: n.Path, Access: Read | Change})
		}
	}
	return grants
}

// writable reports whether a node is the sandbox's own and can be written to.
func writable(n rootfs.Node) bool {
	switch n.Kind {
	case rootfs.Tmpfs, rootfs.Overlay, rootfs.Devpts:
		return true
	case rootfs.View:
		return !n.ReadOnly
	}
	return false
}
