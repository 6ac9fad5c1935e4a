package engine

import (
	"path"
	"slices"

	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/seatbelt"
)

// decideSeatbelt says in a profile's terms what the mount table says.
func (pl *planner) decideSeatbelt() {
	c := &seatbelt.Config{ReadAll: pl.spec.FS.View == ViewHost, Hidden: slices.Clone(pl.spec.FS.Hidden)}
	if c.ReadAll {
		secrets := slices.DeleteFunc(secretPaths(pl.host.OS, pl.host.Home), pl.isMounted)
		c.Hidden = append(secrets, c.Hidden...)
	}
	for i, name := range c.Hidden {
		if src, err := pl.lookup(name); err == nil { // one that is missing, and may come, is meant as it is written
			c.Hidden[i] = src.Path
		}
	}
	for _, d := range pl.refused {
		for _, p := range d.Placeholders {
			c.Keep = append(c.Keep, path.Join(d.Source.Path, p.Name))
		}
	}
	if err := addTable(c, pl.config.Table); err != nil {
		pl.fail(err)
		return
	}
	for _, list := range []*[]string{&c.Keep, &c.Pin} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	pl.config.Seatbelt = c
	if _, err := seatbelt.New(*c); err != nil {
		pl.fail(invalidBecause("", err))
	}
}

// isMounted reports whether the Spec mounts a path, or what holds it.
func (pl *planner) isMounted(p string) bool {
	return slices.ContainsFunc(pl.spec.FS.Mounts, func(m Mount) bool {
		return m.Type == MountBind && rootfs.Within(path.Clean(m.Source), p)
	})
}

// addTable adds what a mount table allows.
func addTable(c *seatbelt.Config, t rootfs.Table) error {
	nodes := slices.Clone(t)
	slices.SortStableFunc(nodes, func(a, b rootfs.Node) int { return rootfs.Depth(a.Path) - rootfs.Depth(b.Path) })
	for _, n := range nodes {
		at := seatbelt.Path{Name: n.Path, Dir: n.Source.Dir}
		writable := slices.ContainsFunc(c.Write, func(p seatbelt.Path) bool { return p.Dir && rootfs.Within(p.Name, n.Path) })
		switch {
		case n.ReadOnly && writable:
			c.Keep = append(c.Keep, n.Path) // and what is above it cannot be moved then
		case n.ReadOnly:
			c.Read = append(c.Read, at)
		case slices.ContainsFunc(c.Keep, func(k string) bool { return rootfs.Within(k, n.Path) }):
			return &UnsupportedError{
				Feature: "a writable mount (" + n.Path + ") in a read-only part of another without namespaces"}
		case writable:
			c.Pin = append(c.Pin, n.Path)
		default:
			c.Write = append(c.Write, at)
		}
	}
	return nil
}

// printSeatbelt prints what was decided about files.
func (p *Plan) printSeatbelt(line func(what, format string, args ...any)) {
	c := p.config.Seatbelt
	reads := "the system's programs and libraries, and what is bound"
	if c.ReadAll {
		reads = "all that this user can"
	}
	line("seatbelt", "reads %s", reads)
	line("write", "%s/tmp", p.private.at)
	line("write", "%s/workspace", p.private.at)
	for _, w := range c.Write {
		line("write", "%s", w.Name)
	}
	for _, name := range c.Keep {
		line("keep", "%s", name)
	}
	for _, name := range c.Pin {
		line("pin", "%s", name)
	}
	for _, name := range c.Hidden {
		line("hide", "%s", name)
	}
}
