package engine

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/seatbelt"
)

// Seatbelt is what a Spec may want of LevelSeatbelt alone. Elsewhere it has to be
// zero.
type Seatbelt struct {
	// ReadAll lets commands read all that this user can, but Hidden. It is for
	// programs that break without, and as other sandboxes for macOS have it: whatever
	// is secret and not listed can be read.
	ReadAll bool
	// Hidden are paths that cannot be read nor written, with what is beneath; also
	// without ReadAll. nil is SecretPaths with ReadAll, and nothing without.
	Hidden []string
}

// SecretPaths are where people keep keys and passwords, in a home directory and of
// the system: to be appended to for Seatbelt.Hidden.
func SecretPaths(home string) []string { return seatbelt.Secrets(home) }

func checkSeatbelt(s Spec) error {
	var errs []error
	for _, p := range s.Seatbelt.Hidden {
		errs = append(errs, hostPath("hidden", p))
	}
	return errors.Join(errs...)
}

// decideSeatbelt says in a profile's terms what the mount table says.
func (p *Plan) decideSeatbelt(h Host) error {
	c := &p.seatbelt
	s := p.Spec.Seatbelt
	c.ReadAll, c.Hidden = s.ReadAll, slices.Clone(s.Hidden)
	if s.ReadAll && s.Hidden == nil {
		c.Hidden = SecretPaths(h.Home)
	}
	for i, name := range c.Hidden {
		if src, err := h.Lookup(name); err == nil { // one that is not there, and may come, is meant as it is written
			c.Hidden[i] = src.Path
		}
	}
	for _, dir := range []string{"/tmp", "/workspace"} {
		c.Write = append(c.Write, seatbelt.Path{Name: privateDir + dir, Dir: true})
	}
	nodes := slices.Clone(p.table)
	slices.SortStableFunc(nodes, func(a, b rootfs.Node) int { return rootfs.Depth(a.Path) - rootfs.Depth(b.Path) })
	beneath := func(list []seatbelt.Path, name string) bool {
		return slices.ContainsFunc(list, func(p seatbelt.Path) bool { return p.Dir && rootfs.Within(p.Name, name) })
	}
	for _, n := range nodes {
		at := seatbelt.Path{Name: n.Path, Dir: n.Source.Dir}
		switch inWritten := beneath(c.Write, n.Path); {
		case n.ReadOnly && inWritten:
			c.Keep = append(c.Keep, n.Path) // and what is above it cannot be moved then
		case n.ReadOnly:
			c.Read = append(c.Read, at)
		case slices.ContainsFunc(c.Keep, func(k string) bool { return rootfs.Within(k, n.Path) }):
			return &UnsupportedError{Feature: "a writable mount (" + n.Path + ") in a read-only part of another without namespaces"}
		case inWritten:
			c.Pin = append(c.Pin, n.Path)
		default:
			c.Write = append(c.Write, at)
		}
	}
	for _, list := range []*[]string{&c.Keep, &c.Pin} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if _, err := seatbelt.New(*c); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// keepGhosts has the profile refuse what elsewhere a ghost takes the place of.
func (p *Plan) keepGhosts() {
	for _, d := range p.ghostDirs {
		for _, g := range d.ghosts {
			p.seatbelt.Keep = append(p.seatbelt.Keep, path.Join(d.dir.Path, g.name))
		}
	}
}

// seatbeltText prints what a Plan decided about files.
func (p *Plan) seatbeltText() string {
	var b strings.Builder
	reads := "the system's programs and libraries, and what is bound"
	if p.seatbelt.ReadAll {
		reads = "all that this user can"
	}
	fmt.Fprintf(&b, "seatbelt reads %s\n", reads)
	for _, w := range p.seatbelt.Write {
		fmt.Fprintf(&b, "write    %s\n", w.Name)
	}
	for _, list := range []struct {
		what  string
		names []string
	}{{"keep    ", p.seatbelt.Keep}, {"pin     ", p.seatbelt.Pin}, {"hide    ", p.seatbelt.Hidden}} {
		for _, name := range list.names {
			fmt.Fprintf(&b, "%s %s\n", list.what, name)
		}
	}
	return b.String()
}
