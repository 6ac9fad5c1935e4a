//go:build linux && (amd64 || arm64)

package ns

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/layout"
)

// Access is a set of rights to files, LANDLOCK_ACCESS_FS_… of landlock(7).
type Access uint64

const (
	resolveUnix Access = 1 << 16 // LANDLOCK_ACCESS_FS_RESOLVE_UNIX

	// Read is looking at files and executing them.
	Read Access = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// Change is writing to files that exist.
	Change Access = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// Make is making, moving and removing them; device nodes are nobody's to make.
	Make Access = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	nodes Access = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// landlockABI is what each version of Landlock added.
var landlockABI = []struct {
	kernel, adds string
	fs           Access
	net, scope   uint64
}{
	1: {kernel: "5.13", adds: "rights to files", fs: 1<<13 - 1},
	2: {kernel: "5.19", adds: "moving files between directories", fs: unix.LANDLOCK_ACCESS_FS_REFER},
	3: {kernel: "6.2", adds: "truncation", fs: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	4: {kernel: "6.7", adds: "TCP ports", net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
	5: {kernel: "6.10", adds: "ioctl on devices", fs: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	6: {kernel: "6.12", adds: "signals and abstract sockets", scope: ScopeAbstract | ScopeSignal},
	7: {kernel: "6.15", adds: "control of audit logs"}, // nothing to confine
	8: {kernel: "7.0", adds: "all threads at once"},    // likewise
	9: {kernel: "7.1", adds: "sockets in files", fs: resolveUnix},
}

// What a domain may keep its processes from reaching outside of it
// (LANDLOCK_SCOPE_…).
const (
	ScopeAbstract uint64 = 1 << 0
	ScopeSignal   uint64 = 1 << 1
)

// LandlockABI asks the kernel for the version of Landlock it has; 0 is none.
func LandlockABI() int {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// LandlockLacks lists what a version of Landlock cannot confine that a newer one
// can, with the first kernel for each.
func LandlockLacks(abi int) (lacks []string) {
	for v := max(abi+1, 1); v < len(landlockABI); v++ {
		if a := landlockABI[v]; a.fs|Access(a.net)|Access(a.scope) != 0 {
			lacks = append(lacks, a.adds+" ("+a.kernel+")")
		}
	}
	return lacks
}

// FirstREFER is the first version that lets files be moved between directories:
// with an older one every such move fails.
const FirstREFER = 2

// Ruleset is a Landlock ruleset (landlock(7)): what is not granted is refused.
type Ruleset struct {
	ABI   int // of the kernel
	Rules []Grant
	TCP   bool   // ports may be bound and connected to
	Scope uint64 // Scope…, as far as the kernel has them

	ScopeOnly bool // files are left as they are
}

// Grant gives rights to what lies at and beneath a path, where there is one.
type Grant struct {
	Path   string
	Access Access
	File   bool // it is no directory: the kernel takes no rights to directories then
}

// ofFiles are the rights that there are to a file.
const ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | Change

// Source is a grant for something of the host.
func Source(s layout.Source, a Access) Grant { return Grant{s.Path, a, !s.Dir} }

// Grants derives from a mount table what the mounts allow, so that files stay as
// they say should a mount ever be reached in another way.
func Grants(t layout.Table) []Grant {
	grants := []Grant{{Path: "/", Access: Read}}
	for _, n := range t {
		switch {
		case n.Kind == layout.Tmpfs || n.Kind == layout.Overlay || n.Kind == layout.Devpts:
			grants = append(grants, Grant{Path: n.Path, Access: Read | Change | Make | resolveUnix})
		case n.Kind == layout.Bind && !n.ReadOnly:
			// Not resolveUnix: a socket in a host's directory leads to the host.
			grants = append(grants, Grant{n.Path, Read | Change | Make, !n.Source.Dir})
		case n.Kind == layout.Proc || n.Path == "/dev":
			grants = append(grants, Grant{Path: n.Path, Access: Read | Change})
		}
	}
	return grants
}

// restrict confines the calling process, and what it starts, for good. It has no
// new privileges already, and has opened all it will open for itself.
func (r *Ruleset) restrict(p *launch.Program) {
	fs := Access(0)
	net, scope := uint64(0), uint64(0)
	for v := 1; v <= min(r.ABI, len(landlockABI)-1); v++ {
		a := landlockABI[v]
		fs, net, scope = fs|a.fs, net|a.net, scope|a.scope
	}
	if r.TCP {
		net = 0
	}
	if r.ScopeOnly {
		// What a domain does not handle it refuses in this one case: to move files
		// between directories.
		fs = unix.LANDLOCK_ACCESS_FS_REFER
		r.Rules = []Grant{{Path: "/", Access: fs}}
	}
	// struct landlock_ruleset_attr; an older kernel knows less of it.
	size := 8
	if r.ABI >= 4 {
		size = 16
	}
	if r.ABI >= 6 {
		size = 24
	}
	attr := p.Words(uint64(fs), net, scope&r.Scope)
	set := p.Do("create ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, attr, launch.Int(size), launch.Int(0)).Slot()
	const how = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	for _, g := range r.Rules {
		if g.File {
			g.Access &= ofFiles
		}
		if g.Access&fs == 0 {
			continue
		}
		// struct landlock_path_beneath_attr: the rights, and the descriptor.
		rule := p.Words(uint64(g.Access&fs), ^uint64(0))
		fd := p.SlotIn(rule, 1)
		// A guest may have moved what leads to a mount of its own: then it has no
		// rights there.
		p.Do("open", g.Path, unix.SYS_OPENAT2, launch.Int(unix.AT_FDCWD), p.Str(g.Path), p.Words(unix.O_PATH|unix.O_CLOEXEC, 0, how), launch.Int(24)).Try().Into(fd)
		p.Do("grant", g.Path, unix.SYS_LANDLOCK_ADD_RULE, set.Arg(), launch.Int(unix.LANDLOCK_RULE_PATH_BENEATH), rule, launch.Int(0)).Try()
	}
	p.Do("restrict", "files", unix.SYS_LANDLOCK_RESTRICT_SELF, set.Arg(), launch.Int(0))
}
