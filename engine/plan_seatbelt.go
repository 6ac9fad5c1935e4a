package engine

import (
	"path"
	"slices"

	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/seatbelt"
)

// Seatbelt holds the options of LevelSeatbelt. It must be zero on other systems.
type Seatbelt struct {
	// ReadAll lets commands read all that this user can, except Hidden, as other
	// sandboxes for macOS do: for programs that break without. Whatever is secret and
	// not listed can be read.
	ReadAll bool
	// Hidden are paths that can be neither read nor written, nor what is beneath
	// them. nil is SecretPaths with ReadAll, and nothing without.
	Hidden []string
}

// SecretPaths are where people keep keys and passwords, in a home directory and in
// the system. Append to them for Seatbelt.Hidden.
func SecretPaths(home string) []string { return seatbelt.Secrets(home) }

func checkSeatbelt(s Spec) (errs []error) {
	for i, p := range s.Seatbelt.Hidden {
		errs = append(errs, hostPath(at("seatbelt.hidden", i), p))
	}
	return errs
}

// decideSeatbelt says in a profile's terms what the mount table says.
func (pl *planner) decideSeatbelt() {
	s := pl.spec.Seatbelt
	c := &seatbelt.Config{ReadAll: s.ReadAll, Hidden: slices.Clone(s.Hidden)}
	if s.ReadAll && s.Hidden == nil {
		c.Hidden = SecretPaths(pl.host.Home)
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
