package rootfs

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Kind is what stands at a path.
type Kind uint8

const (
	Dir     Kind = iota + 1 // an empty directory
	File                    // a file with the content Data
	Symlink                 // a symbolic link to Data
	Bind                    // a file or directory of the host, submounts included
	Device                  // a device node of the host
	Static                  // a tmpfs that is filled from the table and then made read-only
	Tmpfs                   // a writable tmpfs of the sandbox's own
	Overlay                 // a host directory under a writable tmpfs of the sandbox's own, or under a directory made for it
	Proc                    // a procfs of the sandbox's own pid namespace
	Devpts                  // pseudo-terminals of the sandbox's own
)

func (k Kind) String() string {
	return [...]string{"", "dir", "file", "symlink", "bind", "device", "static", "tmpfs", "overlay", "proc", "devpts"}[k]
}

// Identity tells one file of the host from all others, also from one that has
// got its inode number after it was removed.
type Identity struct {
	Dev, Ino uint64
	Born     int64 // when it was made, in nanoseconds; 0 where that is not kept
	Dir      bool
}

// Source is a host file or directory, and which one it was when it was looked
// up. What is mounted later is compared, so a path that has been swapped since
// (the attack of CVE-2024-42472 and of runc's volume races) is refused.
type Source struct {
	Path string // absolute, symlinks resolved
	Identity
	UID, GID int
	Mode     uint32 // permission bits
}

// ErrChanged is matched by the error of Source.Is.
var ErrChanged = errors.New("changed since the plan was made")

// Is returns an error unless id identifies the source.
func (s Source) Is(id Identity) error {
	if s.Identity != id {
		return fmt.Errorf("mount %q: %w", s.Path, ErrChanged)
	}
	return nil
}

// Node is one entry. Which fields count depends on Kind.
type Node struct {
	Path     string // inside, absolute and clean
	Kind     Kind
	Source   Source   // Bind, Device, Overlay
	Upper    Source   // Overlay: the directory that holds what is written; without a Path it is a tmpfs
	ReadOnly bool     // Bind
	NoExec   bool     // Tmpfs
	Data     string   // File, Symlink
	Mode     uint32   // Dir, File, Tmpfs, Static, Overlay but as the root
	Size     int64    // Tmpfs, Overlay: bytes; 0 is no limit, as the kernel has it
	Inodes   int64    // Tmpfs, Overlay: likewise
	Masked   []string // Proc: files that read as empty, directories that are empty (with a trailing slash)
	Locked   []string // Proc: read-only
}

// Table lists nodes so that each comes after those it stands upon. The first
// is the root, "/".
type Table []Node

// FromHost tells whether a node has a Source.
func (k Kind) FromHost() bool { return k == Bind || k == Device || k == Overlay }

// Tree is a tree of the host that a node mounts, under a name of its own.
type Tree struct {
	Name string
	Source
}

// Trees lists what of the host a node mounts. The first is named by the node's
// path, and a second as no path is.
func (n Node) Trees() (trees []Tree) {
	if n.Kind.FromHost() {
		trees = append(trees, Tree{n.Path, n.Source})
	}
	if n.Upper.Path != "" {
		trees = append(trees, Tree{n.UpperName(), n.Upper})
	}
	return trees
}

// UpperName is what Trees calls the Upper.
func (n Node) UpperName() string { return n.Path + "//upper" }

// holdsHost tells whether what is made in a node would be somebody's files: the
// host's, or those that are listed as the work of a sandbox.
func (n Node) holdsHost() bool { return n.Kind == Bind || n.Kind == Overlay && n.Path != "/" }

// fresh tells whether a node is made anew for each sandbox.
func (k Kind) fresh() bool { return k == Tmpfs || k == Proc || k == Devpts || k == Overlay }

// Split parts the table into what sandboxes of one template may share (it is
// read-only, or is the host's own) and what each needs for itself.
func (t Table) Split() (shared, own Table) {
	for _, n := range t {
		if n.Kind.fresh() || own.Below(n.Path) {
			own = append(own, n)
		} else {
			shared = append(shared, n)
		}
	}
	return shared, own
}

// Below tells whether a path lies at or beneath a node of the table.
func (t Table) Below(p string) bool {
	return slices.ContainsFunc(t, func(n Node) bool { return Within(n.Path, p) })
}

// Within tells whether p is dir or lies beneath it.
func Within(dir, p string) bool {
	return dir == "/" || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// Holder returns the node on which the path p stands: the deepest mount that
// contains it, leaving out p itself. A table's root holds everything.
func (t Table) Holder(p string) Node {
	best := t[0]
	for _, n := range t {
		if n.Kind.mount() && n.Path != p && Within(n.Path, p) && len(n.Path) >= len(best.Path) {
			best = n
		}
	}
	return best
}

// Makes tells whether what a node at the path p stands on is the sandbox's own, so
// that a mount point can be made there.
func (t Table) Makes(p string) bool { return !t.Holder(p).holdsHost() }

func (k Kind) mount() bool { return k != Dir && k != File && k != Symlink }

// Add puts a node in, in place of one at the same path, and with the parent
// directories that have to be made. A mount also takes the place of everything
// beneath it, which it would hide. Nothing is ever made in a Bind: that would
// leave files on the host; nor in an Overlay that is not the root.
func (t Table) Add(n Node) Table {
	if n.Kind.mount() && n.Path != "/" {
		t = slices.DeleteFunc(t, func(o Node) bool { return o.Path != n.Path && Within(n.Path, o.Path) })
	}
	if i := slices.IndexFunc(t, func(o Node) bool { return o.Path == n.Path }); i >= 0 {
		t[i] = n
		return t
	}
	if parent := path.Dir(n.Path); len(t) > 0 && !t.Has(parent) && t.Makes(n.Path) {
		t = t.Add(Node{Path: parent, Kind: Dir, Mode: 0o755})
	}
	return append(t, n)
}

// Has tells whether a node stands at exactly this path.
func (t Table) Has(p string) bool {
	return slices.ContainsFunc(t, func(n Node) bool { return n.Path == p })
}

// Sort orders the table so that a mount comes before what stands upon it,
// keeping the order in which nodes were added otherwise.
func (t Table) Sort() {
	slices.SortStableFunc(t, func(a, b Node) int { return Depth(a.Path) - Depth(b.Path) })
}

// Depth is the number of elements of an absolute, clean path.
func Depth(p string) int { return strings.Count(strings.TrimSuffix(p, "/"), "/") }

// Key is the same for tables that are the same in every respect. It is not
// for people.
func (t Table) Key() string {
	var b strings.Builder
	for _, n := range t {
		fmt.Fprintf(&b, "%d %q %q %d %d %d %t %t %t %q %o %d %d %q %q %q %d %d %d %t %d %d %o\n", n.Kind, n.Path, n.Source.Path, n.Source.Dev, n.Source.Ino, n.Source.Born,
			n.Source.Dir, n.ReadOnly, n.NoExec, n.Data, n.Mode, n.Size, n.Inodes, n.Masked, n.Locked,
			n.Upper.Path, n.Upper.Dev, n.Upper.Ino, n.Upper.Born, n.Upper.Dir, n.Upper.UID, n.Upper.GID, n.Upper.Mode)
	}
	return b.String()
}

// String is the line that a Plan prints.
func (n Node) String() string {
	s := fmt.Sprintf("%-8s %s", n.Kind, n.Path)
	switch n.Kind {
	case Bind:
		access := "rw"
		if n.ReadOnly {
			access = "ro"
		}
		s += fmt.Sprintf(" from %s (%s)", n.Source.Path, access)
	case Device:
		s += " from " + n.Source.Path
	case Symlink:
		s += " -> " + n.Data
	case File:
		s += fmt.Sprintf(" (%d bytes)", len(n.Data))
	case Tmpfs:
		s += fmt.Sprintf(" (%s, mode %o)", n.limits(), n.Mode)
	case Overlay:
		if n.Upper.Path != "" {
			return s + fmt.Sprintf(" over %s (written to %s)", n.Source.Path, n.Upper.Path)
		}
		s += fmt.Sprintf(" over %s (%s)", n.Source.Path, n.limits())
	case Proc:
		s += fmt.Sprintf(" (%d masked, %d read-only)", len(n.Masked), len(n.Locked))
	}
	return s
}

func (n Node) limits() string {
	some := func(v int64, unit string) string {
		if v == 0 {
			return "any number of " + unit
		}
		return fmt.Sprintf("%d %s", v, unit)
	}
	return some(n.Size, "bytes") + ", " + some(n.Inodes, "inodes")
}
