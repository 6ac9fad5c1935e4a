package cgroup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/mountinfo"
)

// A Place is a directory in which this process may create cgroups, or the reason why
// it has none. It is data: finding it changes nothing.
type Place struct {
	Dir         string   // the directory to create cgroups in; "" if there is none
	Controllers []string // the controllers that can be turned on for them, sorted
	// Leave is set if this process is itself in Dir, alone. Open then moves it, with all
	// its threads, into a child of Dir, where it stays: the kernel turns controllers on
	// only for the children of a cgroup without processes ("no internal processes").
	Leave bool
	// Reason says why there is no place, or why it is not the process's own cgroup.
	// Remedy says what to do about it. Both may be "".
	Reason, Remedy string
	// Memory is the lowest memory.max, in bytes, of this process's own cgroup and those
	// above it; 0 means unlimited. It does not cover the part of the hierarchy that a
	// cgroup namespace hides.
	Memory int64
	V1     bool // the host's controllers are mounted as cgroup v1
}

// Has reports whether there is a place and it offers all the controllers.
func (p Place) Has(controllers ...string) bool {
	for _, c := range controllers {
		if !slices.Contains(p.Controllers, c) {
			return false
		}
	}
	return p.Dir != ""
}

// Managed reports whether Dir is a slice, which systemd manages: when the last of its
// units that uses a controller ends, systemd turns that controller off, and with it
// the limits of all other cgroups there. CPU limits can be lost in this way. Memory and
// process limits cannot, since systemd uses these controllers for every unit, nor can
// CPU time, which needs no controller.
func (p Place) Managed() bool { return strings.HasSuffix(p.Dir, ".slice") }

// The names of cgroups begin with these prefixes. They identify the process that
// created the cgroup by the inode of its pid namespace, its pid and its start time,
// since pids are reused. A boot id is not needed: no cgroup survives a reboot.
const (
	groupPrefix = "tegmen-"
	hostPrefix  = "tegmen-host-"
)

const scope = "start it with systemd-run --user --scope -p Delegate=yes, or use --systemd-scope, which asks systemd " +
	"for the same"

// view is the machine as Find sees it; tests supply others.
type view struct {
	mounts, self string                          // /proc/self/mountinfo and /proc/self/cgroup
	read         func(name string) string        // returns a file's text, or ""
	writable     func(names ...string) error     // returns an error if this process may not write to one
	others       func(dir string) (others []int) // lists the other processes in a cgroup
}

// Find looks for the nearest cgroup, from the process's own upwards, in which this
// process may create others with memory and process limits: one that it may write to
// and that has no other processes. It takes the nearest so that the limits of all
// cgroups above apply to sandboxes. On systems other than Linux there is none.
func Find() Place { return theView().find() }

// FindIn returns the Place for a given directory: a path, or a cgroup's name as in
// /proc/self/cgroup.
func FindIn(dir string) Place { return theView().findIn(dir) }

func (v view) find() Place {
	mount, own, none := v.own()
	if own == "" {
		return none
	}
	p := Place{Memory: v.memory(mount, own)}
	for dir := own; ; dir = filepath.Dir(dir) {
		if strings.HasPrefix(filepath.Base(dir), hostPrefix) && dir != mount {
			continue // an engine moved the process here; none creates cgroups here
		}
		c := v.candidate(dir, dir == own)
		switch {
		case c.Dir != "" && c.Has("memory", "pids"):
			c.Memory = p.Memory
			return c
		case c.Dir != "" && p.Reason == "":
			p.Reason = fmt.Sprintf("cgroup %s lacks the memory or pids controller: it has %s",
				dir, orNone(c.Controllers))
			p.Remedy = scope
		case p.Reason == "":
			p.Reason, p.Remedy = c.Reason, c.Remedy
		}
		if dir == mount || len(dir) <= len(mount) {
			return p
		}
	}
}

func (v view) findIn(dir string) Place {
	mount, own, none := v.own()
	if own == "" {
		return none
	}
	dir = filepath.Clean(dir)
	if !within(mount, dir) {
		// As in /proc/self/cgroup, and as docker's --cgroup-parent accepts it.
		dir = filepath.Join(mount, dir)
	}
	p := v.candidate(dir, dir == own)
	p.Memory = v.memory(mount, own)
	return p
}

// candidate returns the Place for a directory.
func (v view) candidate(dir string, own bool) Place {
	if err := v.writable(dir, dir+"/cgroup.procs", dir+"/cgroup.subtree_control"); err != nil {
		return Place{Reason: fmt.Sprintf("this user may not change cgroup %s: %v", dir, err), Remedy: scope}
	}
	c := Place{Dir: dir, Controllers: strings.Fields(v.read(dir + "/cgroup.controllers"))}
	slices.Sort(c.Controllers)
	if v.read(dir+"/cgroup.type") == "" {
		return c // the root may have processes
	}
	c.Leave = own
	if others := v.others(dir); len(others) > 0 {
		return Place{
			Reason: fmt.Sprintf("other processes are in cgroup %s (%s), and the kernel enforces limits only in the "+
				"children of a cgroup without processes", dir, list(others)),
			Remedy: "start this program alone in a cgroup: " + scope +
				"; in a container, move the others to a child cgroup",
		}
	}
	return c
}

// own returns where the hierarchy is mounted and this process's directory in it, or a
// Place with the reason why there is none.
func (v view) own() (mount, dir string, none Place) {
	var root string
	v1 := false
	for _, m := range mountinfo.Parse(v.mounts) {
		switch m.Type {
		case "cgroup2":
			root, mount = m.Root, m.Point
		case "cgroup":
			v1 = true
		}
	}
	switch {
	case v1 && (mount == "" || !strings.Contains(v.read(mount+"/cgroup.controllers"), "memory")):
		return "", "", Place{
			V1:     true,
			Reason: "the controllers are mounted as cgroup v1",
			Remedy: "boot with systemd.unified_cgroup_hierarchy=1",
		}
	case mount == "":
		return "", "", Place{Reason: "no cgroup v2 is mounted", Remedy: "mount -t cgroup2 none /sys/fs/cgroup"}
	}
	switch path := pathOf(v.self); {
	case path == "":
		return "", "", Place{Reason: "this process is in no cgroup v2"}
	case !within(root, path):
		return "", "", Place{Reason: "this process's cgroup " + path + " is outside the hierarchy mounted at " + mount}
	default:
		return mount, filepath.Join(mount, strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))), none
	}
}

// pathOf returns the cgroup v2 in the text of /proc/self/cgroup, or "".
func pathOf(self string) string {
	for line := range strings.Lines(self) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path
		}
	}
	return ""
}

// memory returns the smallest memory.max from a directory upwards, or 0.
func (v view) memory(mount, dir string) (least int64) {
	for ; len(dir) >= len(mount); dir = filepath.Dir(dir) {
		if n := number(v.read(dir + "/memory.max")); n > 0 && (least == 0 || n < least) {
			least = n
		}
		if dir == "/" {
			break
		}
	}
	return least
}

// within reports whether path is root or below it. Names outside the cgroup namespace
// begin with /.. (cgroup_namespaces(7)).
func within(root, path string) bool {
	if strings.HasPrefix(path, "/..") {
		return false
	}
	return root == "/" || path == root || strings.HasPrefix(path, root+"/")
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}

// list names the first few processes.
func list(pids []int) string {
	const some = 3
	var words []string
	for _, pid := range pids[:min(len(pids), some)] {
		words = append(words, strconv.Itoa(pid))
	}
	if len(pids) > some {
		words = append(words, "…")
	}
	return "pid " + strings.Join(words, ", ")
}
