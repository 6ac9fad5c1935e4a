package rootfs

import (
	"path"
	"strings"
)

// A Layout says how the nodes of a table are made: which of them sandboxes of one
// template may share.
type Layout struct {
	// Shared are read-only, or the host's. Own are those that each sandbox needs for
	// itself: with what stands on a directory of the host, which would be gone from a
	// template once the host removes what it is on.
	Shared, Own Table
	// Inside are the paths of the Binds that show what is there anyway, in another Bind:
	// these can be made without the host's tree.
	Inside map[string]bool
	// Stash is the only tree of the host in Own that is not Inside, if a template can keep
	// it: at StashOn, where the Tmpfs that it is on will be mounted. Without a Path there
	// is none to keep.
	Stash   Node
	StashOn string // the path of that Tmpfs
	// Direct is set if no template will do.
	Direct bool
}

// Layout returns the layout of a table.
func (t Table) Layout() *Layout {
	l := &Layout{Inside: make(map[string]bool)}
	mounts := make(map[string]int)
	for i, n := range t {
		if n.Kind.mount() {
			mounts[n.Path] = i
		}
	}
	holder := func(p string) Node {
		for p != "/" {
			p = path.Dir(p)
			if i, ok := mounts[p]; ok {
				return t[i]
			}
		}
		return t[0]
	}
	own := make(map[string]bool)
	for _, n := range t {
		h := holder(n.Path)
		onHost := n.Kind.mount() && h.Path != "/" && (h.Kind == Bind || h.Kind == Overlay)
		if !n.fresh() && !own[h.Path] && !onHost {
			l.Shared = append(l.Shared, n)
			continue
		}
		l.Own, own[n.Path] = append(l.Own, n), n.Kind.mount()
		if inside(n, h) {
			l.Inside[n.Path] = true
		} else if n.Kind.FromHost() {
			l.keep(n, h, holder(h.Path))
		}
	}
	return l
}

// inside reports whether n shows what is at its path in the node that it is on.
func inside(n, on Node) bool {
	return n.Kind == Bind && on.Kind == Bind && n.Mapped == on.Mapped && (n.ReadOnly || !on.ReadOnly) && on.Path != "/" &&
		n.Source.Path == on.Source.Path+strings.TrimPrefix(n.Path, on.Path)
}

// keep stashes a tree of the host that is on a node of each sandbox's own.
func (l *Layout) keep(n, on, below Node) {
	if l.Stash.Path != "" || n.Kind != Bind || on.Kind != Tmpfs || below.Kind != Static {
		l.Direct = true
		return
	}
	l.Stash, l.StashOn = n, on.Path
}

// Outer returns the nodes that are not Inside.
func (l *Layout) Outer() Table {
	outer := append(Table(nil), l.Shared...)
	for _, n := range l.Own {
		if !l.Inside[n.Path] {
			outer = append(outer, n)
		}
	}
	return outer
}

// Kept returns the nodes with what a template keeps of the host.
func (l *Layout) Kept() Table {
	if l.Stash.Path == "" {
		return l.Shared
	}
	return append(append(Table(nil), l.Shared...), l.Stash)
}
