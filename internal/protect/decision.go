package protect

import (
	"path"
	"path/filepath"
	"slices"

	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/workspace"
)

// Rules turns a decision into what a commit may not change, for a workspace under
// an overlay: there everything can be changed inside, and what is protected does
// not leave it. Outside of the workspace nothing can be changed: those nodes are
// returned, read-only.
func (d Decision) Rules() (rules workspace.Rules, nodes []rootfs.Node) {
	for _, n := range d.Nodes {
		rel, inside := d.relative(n.Path)
		switch {
		case !inside:
			n.ReadOnly = true
			nodes = append(nodes, n)
		case n.ReadOnly:
			rules.Protected = append(rules.Protected, rel)
		default:
			rules.Pinned = append(rules.Pinned, rel)
		}
	}
	for _, dir := range d.Dirs {
		for _, p := range dir.Placeholders {
			for _, at := range p.At {
				if rel, inside := d.relative(at); inside {
					rules.Protected = append(rules.Protected, rel)
				}
			}
		}
	}
	for _, list := range []*[]string{&rules.Protected, &rules.Pinned} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return rules, nodes
}

// relative is a path inside, relative to the workspace.
func (d Decision) relative(at string) (string, bool) {
	for _, dir := range d.at {
		if rel, err := filepath.Rel(dir, at); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// Mount adds the placeholders to a table, with the source that each has: source
// reports false for one that was not made.
func Mount(t rootfs.Table, dirs []Dir, source func(Dir, Placeholder) (rootfs.Source, bool)) rootfs.Table {
	t = slices.Clone(t)
	for _, d := range dirs {
		some := false
		for _, p := range d.Placeholders {
			src, ok := source(d, p)
			for _, at := range p.At {
				if ok {
					t = t.Add(rootfs.Node{Path: at, Kind: rootfs.Bind, Source: src, ReadOnly: true})
				}
			}
			some = some || ok
		}
		for _, at := range d.At {
			if some {
				t = t.Add(rootfs.Node{Path: path.Join(at, LockName), Kind: rootfs.Static, Mode: 0o555})
			}
		}
	}
	t.Sort()
	return t
}

// Paths lists where placeholders and their locks are, inside; sorted.
func Paths(dirs []Dir) (paths []string) {
	for _, d := range dirs {
		for _, at := range d.At {
			paths = append(paths, path.Join(at, LockName))
		}
		for _, p := range d.Placeholders {
			paths = append(paths, p.At...)
		}
	}
	slices.Sort(paths)
	return paths
}
