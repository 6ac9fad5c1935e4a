package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A HostView is the host's file system, read-only, on top of the tree that [Host]
// returns. /etc, /proc, /sys, /dev, /tmp and /run stay as they are there.
//
// Directories are seen through an overlay without an upper directory. Its files are the
// host's, but its sockets and pipes are not: connecting to a daemon's socket and opening
// a named pipe fail, which a read-only mount would allow. It contains whiteouts for what
// is hidden. Nothing that happens to the host's file removes those: a mount would vanish
// when a program of the host replaces a file by renaming another, as programs do with
// the files that they keep passwords in.
type HostView struct {
	Look   Lookup                             // as for Host
	Link   Lookup                             // finds a symbolic link itself; nil finds none
	List   func(dir string) ([]string, error) // lists the names in a directory
	Mounts []HostMount                        // of the host
	// Home is a directory in which everything can be changed, in memory; "" is none.
	Home string
	// Hidden are absolute paths that do not exist inside, nor does what is beneath them,
	// under any name. They need not exist.
	Hidden []string
	// Later hides those as well that do not exist yet. A directory of that name can then
	// be made in Home from Linux 6.6 on.
	Later bool
	// Bound are paths that the caller will mount something at: these are not hidden.
	Bound []string
	// Mapped has root's files in Home be the guest's.
	Mapped bool
	// May reports whether the sandbox's user has all of these permissions (04 to list, 01
	// to enter) for a directory; nil: what List can list.
	May func(dir Source, permissions uint32) bool
}

// maxView is the number of nodes of a view: each takes a descriptor while it is mounted.
const maxView = 512

// ErrTooManyMounts is matched by an error of HostView.Tree.
var ErrTooManyMounts = errors.New("too many mounts in directories that can be read")

// HideError says that a path cannot be hidden: what holds it is mounted as a whole.
type HideError struct {
	Path string // to be hidden
	In   string // what holds it
}

func (e *HideError) Error() string {
	return fmt.Sprintf("hide %s: nothing in %s can be hidden", e.Path, e.In)
}

// Tree adds the view to a tree from Host, with the limits of o for what is written. It
// also returns what is hidden by its real paths, and the mounts of the host that are not
// seen because of their type. Its error is a HideError, ErrTooManyMounts, or of List.
func (v HostView) Tree(t Table, o Options) (_ Table, hidden []string, unseen []HostMount, err error) {
	b := &viewBuilder{HostView: v, o: o}
	b.hide()
	// Whatever the view has there comes instead.
	b.t = slices.DeleteFunc(slices.Clone(t), func(n Node) bool { return Within("/var", n.Path) })
	names, err := v.List("/")
	if err != nil {
		return nil, nil, nil, err
	}
	for _, name := range names {
		at := "/" + name
		if !b.t.Has(at) && !ofSandbox(at) {
			b.add(at)
		}
	}
	b.addHome()
	b.openBound()
	b.t.Sort()
	if err := b.apply(); err != nil {
		return nil, nil, nil, err
	}
	if len(b.t) > maxView {
		return nil, nil, nil, fmt.Errorf("%w: the host has %d", ErrTooManyMounts, len(v.Mounts))
	}
	return b.t, b.hidden, b.unseen, nil
}

// ofSandbox reports whether a path of the host is not in any view: processes, devices,
// and where sockets of daemons and other people's files come and go.
func ofSandbox(at string) bool {
	return slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/run", "/tmp", "/lost+found", varTmp},
		func(dir string) bool { return Within(dir, at) })
}

const varTmp = "/var/tmp"

// viewBuilder adds the host's directories to a table.
type viewBuilder struct {
	HostView
	o      Options
	t      Table
	hidden []string
	unseen []HostMount
}

// hide finds out by which paths the hidden files can be reached: the real one, the end
// of the link that may be there, and both in other mounts of the same file system.
func (b *viewBuilder) hide() {
	add := func(p string) {
		b.hidden = append(b.hidden, p)
		b.hidden = append(b.hidden, b.aliases(p)...)
	}
	dirs := make(map[string]string) // real paths; "": there is none
	for _, p := range b.Hidden {
		if real := b.realName(dirs, path.Clean(p)); real != "" {
			add(real)
			if src, err := b.Look(real); err == nil && src.Path != real {
				add(src.Path)
			}
		}
	}
	slices.Sort(b.hidden)
	b.hidden = slices.Compact(b.hidden)
}

// realName is the path without links in its parents. If these do not exist it is the
// first of them that does not: what is made there later is hidden in it.
func (b *viewBuilder) realName(dirs map[string]string, p string) string {
	for ; p != "/"; p = path.Dir(p) {
		parent := path.Dir(p)
		real, known := dirs[parent]
		if !known {
			switch src, err := b.Look(parent); {
			case err == nil:
				real = src.Path
			case !errors.Is(err, fs.ErrNotExist):
				return "" // what this user cannot reach
			}
			dirs[parent] = real
		}
		if real != "" {
			real = path.Join(real, path.Base(p))
			if !b.Later && !b.exists(real) {
				return ""
			}
			return real
		}
	}
	return ""
}

func (b *viewBuilder) exists(p string) bool {
	if _, ok := b.link(p); ok {
		return true
	}
	_, err := b.Look(p)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

func (b *viewBuilder) link(p string) (Source, bool) {
	if b.Link == nil {
		return Source{}, false
	}
	src, err := b.Link(p)
	return src, err == nil
}

// mountOf is the mount in which a path lies.
func (b *viewBuilder) mountOf(p string) (best HostMount) {
	for _, m := range b.Mounts {
		if Within(m.Path, p) && len(m.Path) >= len(best.Path) { // a later one covers an earlier one
			best = m
		}
	}
	if best.Path == "" { // the root is no mount: of a chroot
		best = HostMount{Path: "/", Root: "/", Type: "rootfs"}
	}
	return best
}

// aliases are the other paths of a file: in bind mounts, and where a whole file system
// is mounted as well as a part of it.
func (b *viewBuilder) aliases(p string) (others []string) {
	in := b.mountOf(p)
	if in.Dev == "" {
		return nil
	}
	inside := path.Join(in.Root, strings.TrimPrefix(p, in.Path))
	for _, m := range b.Mounts {
		if m.Dev == in.Dev && Within(m.Root, inside) {
			if other := path.Join(m.Path, strings.TrimPrefix(inside, m.Root)); other != p {
				others = append(others, other)
			}
		}
	}
	return others
}

// inner are the mounts beneath a directory.
func (b *viewBuilder) inner(dir string) (list []HostMount) {
	for _, m := range b.Mounts {
		if m.Path != dir && Within(dir, m.Path) {
			list = append(list, m)
		}
	}
	return list
}

// add adds what the host has at a real path. What cannot be looked at is left out: a
// guest could not either.
func (b *viewBuilder) add(at string) {
	if b.t.Has(at) || ofSandbox(at) || slices.Contains(b.hidden, at) || len(b.t) > maxView {
		return
	}
	inner, m := b.inner(at), b.mountOf(at)
	if !slices.Contains(layered, m.Type) && !slices.Contains(plain, m.Type) {
		// Not looked at: that may take forever, or have an autofs mount something.
		if m.Path == at {
			b.unseen = append(b.unseen, m)
		}
		b.addInner(at, inner)
		return
	}
	if l, ok := b.link(at); ok {
		b.t = b.t.Add(Node{Path: at, Kind: Symlink, Data: l.Link})
		return
	}
	src, err := b.Look(at)
	switch {
	case err != nil || src.Path != at:
	case len(inner) > 0:
		b.open(at, src, inner)
	case src.Dir && slices.Contains(layered, m.Type):
		b.t = b.t.Add(b.layer(at, src))
	default:
		b.t = b.t.Add(Node{Path: at, Kind: Bind, Source: src, ReadOnly: true})
	}
}

func (b *viewBuilder) inHome(at string) bool { return b.Home != "" && Within(b.Home, at) }

// closed reports whether the sandbox's user lacks permissions for a directory.
func (b *viewBuilder) closed(dir Source, permissions uint32) bool {
	return b.May != nil && !b.May(dir, permissions) && !(b.Mapped && b.inHome(dir.Path))
}

// openBound has what will be mounted in a directory that the sandbox's user may not enter
// be all that is seen there.
func (b *viewBuilder) openBound() {
	for _, bound := range b.Bound {
		at := bound
		for dir := path.Dir(bound); dir != "/"; dir = path.Dir(dir) {
			if src, err := b.Look(dir); err == nil && src.Path == dir && b.closed(src, 01) {
				at = dir
			}
		}
		if holder := b.t.Holder(at); at != bound && !b.t.Has(at) && holder.Kind == View {
			b.t = b.t.Add(Node{Path: at, Kind: Static, Mode: 0o755})
		}
	}
}

func (b *viewBuilder) layer(at string, src Source) Node {
	n := Node{Path: at, Kind: View, Source: src, ReadOnly: !b.inHome(at)}
	if !n.ReadOnly {
		n.Mapped = b.Mapped && src.UID == 0
		n.Mode, n.Size, n.Inodes = src.Mode&0o777|0o700, b.o.TmpBytes, b.o.TmpInodes
	}
	return n
}

// open adds a directory that has mounts in it, one entry after the other: an overlay
// shows no mounts, and a user namespace refuses one that would uncover what these hide.
func (b *viewBuilder) open(at string, src Source, inner []HostMount) {
	if at == b.Home {
		home := b.o.tmpfs(at, src.Mode&0o777|0o700, false)
		b.t = b.t.Add(home)
	} else {
		b.t = b.t.Add(Node{Path: at, Kind: Dir, Mode: 0o755})
	}
	if b.closed(src, 05) {
		return // nor what is in it: this user may not pass
	}
	names, err := b.List(at)
	if err != nil {
		b.addInner(at, inner)
		return
	}
	for _, name := range names {
		b.add(path.Join(at, name))
	}
}

// addInner adds the mounts in a directory that cannot be seen itself, the outer ones
// first.
func (b *viewBuilder) addInner(at string, inner []HostMount) {
	if !b.t.Has(at) {
		b.t = b.t.Add(Node{Path: at, Kind: Dir, Mode: 0o755})
	}
	slices.SortStableFunc(inner, func(x, y HostMount) int { return Depth(x.Path) - Depth(y.Path) })
	for _, m := range inner {
		if b.t.Makes(m.Path) { // else it is in one that has been added
			b.add(m.Path)
		}
	}
}

// addHome has Home writable, and /var/tmp where the host has it.
func (b *viewBuilder) addHome() {
	if src, err := b.Look(varTmp); err == nil && src.Dir && src.Path == varTmp {
		b.t = b.t.Add(b.o.tmpfs(varTmp, 0o1777, false))
	}
	if b.Home == "" || b.t.Has(b.Home) || b.t.Holder(b.Home).Kind != View {
		return
	}
	if src, err := b.Look(b.Home); err == nil && src.Dir {
		b.t = b.t.Add(b.layer(b.Home, src))
	}
}

// apply hides what is in the directories of the view.
func (b *viewBuilder) apply() error {
	for _, h := range b.hidden {
		// What the system's view has at exactly this path.
		b.t = slices.DeleteFunc(b.t, func(n Node) bool { return n.Path != "/" && n.Kind == Bind && Within(h, n.Path) })
		if slices.Contains(b.Bound, h) {
			continue
		}
		holder := b.t.Holder(h)
		if holder.Kind == Bind && b.exists(h) {
			return &HideError{Path: h, In: holder.Path}
		}
		if slices.ContainsFunc(b.Bound, func(p string) bool { return Within(h, p) }) {
			if src, err := b.Look(h); err == nil && src.Dir && holder.Kind == View {
				// Empty, but for what is to be mounted in it.
				b.t = b.t.Add(Node{Path: h, Kind: Static, Mode: 0o755})
			}
			continue
		}
		for i, n := range b.t {
			if n.Kind == View && n.Path == holder.Path {
				b.t[i].Hidden = append(b.t[i].Hidden, strings.TrimPrefix(h, n.Path+"/"))
			}
		}
	}
	for i, n := range b.t {
		b.t[i].Hidden = outermost(n.Hidden)
	}
	return nil
}

// outermost drops paths that lie beneath others. list is sorted, but for "a-b", which
// comes before "a/b".
func outermost(list []string) (kept []string) {
	for _, p := range list {
		if !slices.ContainsFunc(list, func(o string) bool { return o != p && Within(o, p) }) {
			kept = append(kept, p)
		}
	}
	return kept
}
