package rootfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of a node.
type Kind uint8

// The kinds of nodes. The zero Kind is invalid.
const (
	Dir     Kind = iota + 1 // an empty directory
	File                    // a file with the content Data
	Symlink                 // a symbolic link to Data
	Bind                    // a file or directory of the host, submounts included
	Device                  // a device node of the host
	Static                  // a tmpfs that is filled from the table and then made read-only
	Tmpfs                   // a writable tmpfs, private to the sandbox
	Overlay                 // a host directory under a writable tmpfs, or under a directory made for it
	View                    // a host directory as HostView shows it; ReadOnly, or what is written is lost
	Proc                    // a procfs of the sandbox's pid namespace
	Devpts                  // pseudo-terminals, private to the sandbox
)

var kindNames = [...]string{
	Dir: "dir", File: "file", Symlink: "symlink", Bind: "bind", Device: "device", Static: "static",
	Tmpfs: "tmpfs", Overlay: "overlay", View: "view", Proc: "proc", Devpts: "devpts",
}

func (k Kind) String() string { return kindNames[k] }

// Identity distinguishes one file of the host from all others, even from a later
// file that has reused its inode number.
type Identity struct {
	Dev, Ino uint64 // device and inode number
	Born     int64  // time of creation, nanoseconds since 1970; 0 if the file system does not record it
	Dir      bool   // a directory
}

// Source is a host file or directory, with its identity when it was looked up. What
// is mounted later is compared with it, so a path that has been swapped since (the
// attack of CVE-2024-42472 and of runc's volume races) is refused.
type Source struct {
	Path     string // absolute, symlinks resolved
	Identity        // of the file at Path
	UID, GID int    // its owner and group
	Mode     uint32 // its permission bits
	Link     string // if it is a symbolic link itself, where that leads; then Path has its name
}

// ErrChanged is matched by the errors of Source.Is.
var ErrChanged = errors.New("changed since the plan was made")

// Is returns an ErrChanged unless id identifies the source.
func (s Source) Is(id Identity) error {
	if s.Identity != id {
		return fmt.Errorf("mount %q: %w", s.Path, ErrChanged)
	}
	return nil
}

// Node is one entry of a Table. Each field applies to the kinds that its comment
// names.
type Node struct {
	Path     string   // inside, absolute and clean
	Kind     Kind     // what stands there
	Source   Source   // Bind, Device, Overlay, View
	Upper    Source   // Overlay: the directory that holds what is written; without a Path it is a tmpfs
	ReadOnly bool     // Bind, View
	Hidden   []string // View: paths in it that do not exist inside, relative
	Mapped   bool     // Bind, Overlay, View: root's files are the guest's, and the reverse (idmapped mount)
	NoExec   bool     // Tmpfs
	Data     string   // File: its content; Symlink: its target
	Mode     uint32   // Dir, File, Tmpfs, Static, writable View, Overlay except as the root: permission bits
	Size     int64    // Tmpfs, Overlay, writable View: bytes; 0 is no limit, as in the kernel
	Inodes   int64    // Tmpfs, Overlay, writable View: number of files; 0 is no limit
	Cgroup   bool     // Dir: a cgroup2 is mounted below it, where that can be
	Cgroups  string   // Proc: the path inside of what takes the place of its file cgroups; "": nothing
	Masked   []string // Proc: files that read as empty, directories that are empty (with a trailing slash)
	Locked   []string // Proc: read-only
}

// Table lists nodes, each after those it stands upon. The first is the root, "/".
type Table []Node

// FromHost reports whether nodes of the kind have a Source.
func (k Kind) FromHost() bool { return k == Bind || k == Device || k == Overlay || k == View }

// Tree is a tree of the host that a node mounts.
type Tree struct {
	Name   string // unique in the table
	Source        // on the host
}

// Trees lists the trees of the host that a node mounts. The first is named by the
// node's path; the name of a second is not a clean path, so the two never collide.
func (n Node) Trees() (trees []Tree) {
	if n.Kind.FromHost() {
		trees = append(trees, Tree{n.Path, n.Source})
	}
	if n.Upper.Path != "" {
		trees = append(trees, Tree{n.UpperName(), n.Upper})
	}
	return trees
}

// UpperName returns the name that Trees gives the Upper.
func (n Node) UpperName() string { return n.Path + "//upper" }

// holdsHost reports whether files made in a node would be somebody's: the host's, or
// listed as the work of a sandbox.
func (n Node) holdsHost() bool {
	return n.Kind == Bind || n.Kind == View || n.Kind == Overlay && n.Path != "/"
}

// fresh reports whether each sandbox gets a new node.
func (n Node) fresh() bool {
	k := n.Kind
	return k == Tmpfs || k == Proc || k == Devpts || k == Overlay || k == View && !n.ReadOnly
}

// Within reports whether p is dir or lies beneath it.
func Within(dir, p string) bool {
	return dir == "/" || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// Holder returns the node on which the path p stands: the deepest mount that contains
// it, other than a node at p itself. The root of a table holds everything.
func (t Table) Holder(p string) Node {
	best := t[0]
	for _, n := range t {
		if n.Kind.mount() && n.Path != p && Within(n.Path, p) && len(n.Path) >= len(best.Path) {
			best = n
		}
	}
	return best
}

// Makes reports whether a node at the path p stands on a node that belongs to the
// sandbox, so that a mount point can be made there.
func (t Table) Makes(p string) bool { return !t.Holder(p).holdsHost() }

func (k Kind) mount() bool { return k != Dir && k != File && k != Symlink }

// Add returns the table with a node added, which replaces one at the same path. It
// also adds the parent directories that must be made. A mount replaces everything
// beneath it, which it would hide. Nothing is ever made in a Bind, which would leave
// files on the host, or in an Overlay that is not the root. Add may modify t.
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

// Has reports whether a node stands at exactly this path.
func (t Table) Has(p string) bool {
	return slices.ContainsFunc(t, func(n Node) bool { return n.Path == p })
}

// Sort orders the table so that a mount comes before the nodes that stand upon it,
// and otherwise keeps the order.
func (t Table) Sort() {
	slices.SortStableFunc(t, func(a, b Node) int { return Depth(a.Path) - Depth(b.Path) })
}

// Depth returns the number of elements of an absolute, clean path; 0 for "/".
func Depth(p string) int { return strings.Count(strings.TrimSuffix(p, "/"), "/") }

// Key returns the same string for tables that mount the same, and different ones for
// all others. Sandboxes whose tables have one key share a template.
func (t Table) Key() string {
	k := make(key, 0, 128*len(t))
	for _, n := range t {
		k.numbers(int64(n.Kind), int64(n.Mode), n.Size, n.Inodes)
		k.bools(n.ReadOnly, n.Mapped, n.NoExec, n.Cgroup)
		k.strings(n.Path, n.Data, n.Cgroups)
		for _, list := range [][]string{n.Masked, n.Locked, n.Hidden} {
			k.numbers(int64(len(list)))
			k.strings(list...)
		}
		for _, s := range []Source{n.Source, n.Upper} {
			k.strings(s.Path)
			k.numbers(int64(s.Dev), int64(s.Ino), s.Born)
			k.bools(s.Dir)
		}
		// The owner of a Source decides nothing about the mount.
		k.numbers(int64(n.Upper.UID), int64(n.Upper.GID), int64(n.Upper.Mode))
	}
	return string(k)
}

// key grows by values such that different ones never make the same key.
type key []byte

func (k *key) numbers(list ...int64) {
	for _, v := range list {
		*k = binary.AppendVarint(*k, v)
	}
}

func (k *key) bools(list ...bool) {
	for _, v := range list {
		*k = strconv.AppendBool(*k, v)
	}
}

func (k *key) strings(list ...string) {
	for _, s := range list {
		k.numbers(int64(len(s)))
		*k = append(*k, s...)
	}
}

// String returns the line that a Plan prints.
func (n Node) String() string {
	s := fmt.Sprintf("%-8s %s", n.Kind, n.Path)
	switch n.Kind {
	case Bind:
		access := "rw"
		if n.ReadOnly {
			access = "ro"
		}
		if n.Mapped {
			access += ", root's files are the guest's"
		}
		s += fmt.Sprintf(" from %s (%s)", n.Source.Path, access)
	case View:
		s += fmt.Sprintf(" from %s (ro", n.Source.Path)
		if !n.ReadOnly {
			s = strings.TrimSuffix(s, "ro") + "changes are lost: " + n.limits()
		}
		if n.Mapped {
			s += ", root's files are the guest's"
		}
		s += fmt.Sprintf(", %d hidden)", len(n.Hidden))
	case Device:
		s += " from " + n.Source.Path
	case Symlink:
		s += " -> " + n.Data
	case File:
		s += fmt.Sprintf(" (%d bytes)", len(n.Data))
	case Tmpfs:
		s += fmt.Sprintf(" (%s, mode %o", n.limits(), n.Mode)
		if n.NoExec {
			s += ", noexec"
		}
		s += ")"
	case Overlay:
		if n.Mapped {
			s += " (root's files are the guest's)"
		}
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
