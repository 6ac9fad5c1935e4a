package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Place is where this process may make cgroups, or why it may not. It is data:
// nothing has been changed yet.
type Place struct {
	Dir         string   // the directory to make them in; "" when there is none
	Controllers []string // that can be turned on for them, sorted
	// Leave is set when this process is in Dir itself, alone. It has to move to a
	// child before controllers can be turned on: those of a cgroup's children
	// compete with no process ("no internal processes").
	Leave bool
	// Reason is why there is no place, or why it is not the process's own cgroup;
	// Remedy is what to do about it.
	Reason, Remedy string
	// Memory is the least that this process's own cgroup and those above it may
	// use, in bytes; 0 is no limit. Parts of the hierarchy that a namespace hides
	// are not in it.
	Memory int64
}

// Has tells whether all the controllers can be had.
func (p Place) Has(controllers ...string) bool {
	for _, c := range controllers {
		if !slices.Contains(p.Controllers, c) {
			return false
		}
	}
	return p.Dir != ""
}

// Managed tells whether it is a slice, and so systemd's to change: when the last of
// its units that has a use for a controller ends, it turns that off, and with it
// the limits of all others there. Memory and processes it counts for every unit, CPU
// time does not take a controller, so limits of CPUs are what is lost.
func (p Place) Managed() bool { return strings.HasSuffix(p.Dir, ".slice") }

// names of what is made here. A cgroup that a process has made names it: by the
// inode of its pid namespace, its pid, and when it started, since a pid comes
// again. (No boot id: nothing of a cgroup hierarchy is there after a boot.)
const (
	groupPrefix = "tegmen-"
	hostPrefix  = "tegmen-host-"
)

const scope = "run it by systemd-run --user --scope -p Delegate=yes, or with --systemd-scope, which asks systemd for the same"

// abandoned tells whether a name was given by a process that has ended.
func abandoned(name, stem string, startOf func(pid int) string) bool {
	mine, theirs := strings.Split(stem, "-"), strings.Split(name, "-")
	if len(theirs) < 4 || theirs[0] != mine[0] || theirs[1] != mine[1] {
		return false
	}
	pid, err := strconv.Atoi(theirs[2])
	return err == nil && pid > 0 && startOf(pid) != theirs[3]
}

// view is the machine as Find sees it; tests have others.
type view struct {
	mounts, self string                          // /proc/self/mountinfo and /proc/self/cgroup
	read         func(name string) string        // a file's text, or ""
	writable     func(names ...string) error     // may be written to, by this process
	others       func(dir string) (others []int) // processes in a cgroup but this one
}

// Find looks for the nearest cgroup, from the process's own upwards, in which it
// may make others with limits to memory and processes: one that it may write to
// and that has no processes but this one. The nearest, so that the limits of
// those above it hold for sandboxes, too.
func Find() Place { return theView().find() }

// FindIn is Find for a directory that is given.
func FindIn(dir string) Place { return theView().findIn(dir) }

func (v view) find() Place {
	mount, own, none := v.own()
	if own == "" {
		return none
	}
	p := Place{Memory: v.memory(mount, own)}
	for dir := own; ; dir = filepath.Dir(dir) {
		if strings.HasPrefix(filepath.Base(dir), hostPrefix) && dir != mount {
			continue // where an engine has moved to; nothing is made there
		}
		c := v.candidate(dir, dir == own)
		switch {
		case c.Dir != "" && c.Has("memory", "pids"):
			c.Memory = p.Memory
			return c
		case c.Dir != "" && p.Reason == "":
			p.Reason = fmt.Sprintf("in %s there are no controllers but %s", dir, orNone(c.Controllers))
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
		// As it stands in /proc/self/cgroup, and as docker's --cgroup-parent takes it.
		dir = filepath.Join(mount, dir)
	}
	p := v.candidate(dir, dir == own)
	p.Memory = v.memory(mount, own)
	return p
}

// candidate tells what can be done in a directory.
func (v view) candidate(dir string, own bool) Place {
	if err := v.writable(dir, dir+"/cgroup.procs", dir+"/cgroup.subtree_control"); err != nil {
		return Place{Reason: fmt.Sprintf("cgroup %s is not this user's to change: %v", dir, err), Remedy: scope}
	}
	c := Place{Dir: dir, Controllers: strings.Fields(v.read(dir + "/cgroup.controllers"))}
	slices.Sort(c.Controllers)
	if v.read(dir+"/cgroup.type") == "" {
		return c // the root, where processes are no obstacle
	}
	c.Leave = own
	if others := v.others(dir); len(others) > 0 {
		return Place{
			Reason: fmt.Sprintf("other processes are in cgroup %s (%s), and the kernel gives limits only to children of a cgroup without processes", dir, list(others)),
			Remedy: "start this program in a cgroup of its own: " + scope + "; in a container, move the others to a child of it",
		}
	}
	return c
}

// own finds the hierarchy and this process's directory in it, or says why there
// is none.
func (v view) own() (mount, dir string, none Place) {
	var root string
	v1 := false
	for line := range strings.Lines(v.mounts) {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue (proc_pid_mountinfo(5))
		before, after, ok := strings.Cut(line, " - ")
		f, fs := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(fs) < 1 {
			continue
		}
		switch fs[0] {
		case "cgroup2":
			root, mount = unescape(f[3]), unescape(f[4])
		case "cgroup":
			v1 = true
		}
	}
	switch {
	case v1 && (mount == "" || !strings.Contains(v.read(mount+"/cgroup.controllers"), "memory")):
		return "", "", Place{Reason: "the controllers are in cgroup v1, which is not used", Remedy: "boot with systemd.unified_cgroup_hierarchy=1"}
	case mount == "":
		return "", "", Place{Reason: "no cgroup v2 is mounted", Remedy: "mount -t cgroup2 none /sys/fs/cgroup"}
	}
	switch path := pathOf(v.self); {
	case path == "":
		return "", "", Place{Reason: "this process is in no cgroup of version 2"}
	case !within(root, path):
		return "", "", Place{Reason: "this process's cgroup, " + path + ", is outside of what is mounted at " + mount}
	default:
		return mount, filepath.Join(mount, strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))), none
	}
}

// pathOf is the cgroup of version 2 in the text of /proc/self/cgroup, or "".
func pathOf(self string) string {
	for line := range strings.Lines(self) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path
		}
	}
	return ""
}

// memory is the smallest memory.max from a directory up.
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

// within tells whether path is root or below it. Names that a namespace cannot
// see begin with /.. (cgroup_namespaces(7)).
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

// list names some processes.
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

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	for _, c := range []string{" ", "\t", "\n", `\`} {
		s = strings.ReplaceAll(s, fmt.Sprintf(`\%03o`, c[0]), c)
	}
	return s
}

func readText(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}
