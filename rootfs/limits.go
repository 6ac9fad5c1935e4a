package rootfs

import (
	"fmt"
	"path"
	"strconv"
)

// Limits are those of a sandbox that programs adapt themselves to, as runtimes do with
// heaps and numbers of threads. 0 is none.
type Limits struct {
	Memory int64   // bytes
	CPUs   float64 // how many can be used at once
	Pids   int64   // processes and threads
	// V1 is set if the host's controllers are those of cgroup v1. Programs find that out,
	// and would not look at version 2.
	V1 bool
}

const cgroups = "/sys/fs/cgroup"

// addLimits adds what programs look for in a cgroup of their own (cgroups(7)), whoever
// limits them. They read these files if /proc/self/mountinfo has a cgroup2 there, so one
// is mounted below. It cannot be looked into: it would show more than these numbers.
func (o Options) addLimits(t Table, look Lookup) Table {
	if o.Limits == nil {
		return t
	}
	if root := t[0]; root.Kind != Static {
		at := path.Join(root.Source.Path, "/sys")
		if sys, err := look(at); err != nil || sys.Path != at || !sys.Dir {
			return t // nothing is made in a directory of the host
		}
		t = t.Add(Node{Path: "/sys", Kind: Static, Mode: 0o755})
	}
	number := func(n int64) string {
		if n <= 0 {
			return "max\n"
		}
		return strconv.FormatInt(n, 10) + "\n"
	}
	cpus := "max 100000\n"
	if o.Limits.CPUs > 0 {
		cpus = fmt.Sprintf("%d 100000\n", int64(o.Limits.CPUs*100000))
	}
	files := []entry{
		{"cgroup.controllers", "cpu memory pids\n"},
		{"memory.max", number(o.Limits.Memory)},
		{"cpu.max", cpus},
		{"pids.max", number(o.Limits.Pids)},
	}
	if o.Limits.V1 {
		limit := number(o.Limits.Memory)
		if o.Limits.Memory <= 0 {
			limit = "9223372036854771712\n" // as version 1 has it
		}
		// For libuv, which reads /proc/self/cgroup, where version 1 comes first.
		files = append(files, entry{"memory/memory.limit_in_bytes", limit}, entry{"memory/memory.soft_limit_in_bytes", limit},
			entry{"proc", "#subsys_name\thierarchy\tnum_cgroups\tenabled\n" +
				"cpuset\t0\t1\t1\ncpu\t0\t1\t1\ncpuacct\t0\t1\t1\nmemory\t0\t1\t1\npids\t0\t1\t1\n"})
	}
	t = t.Add(Node{Path: cgroups, Kind: Dir, Mode: 0o755, Cgroup: true})
	for _, f := range files {
		t = t.Add(Node{Path: path.Join(cgroups, f.name), Kind: File, Mode: 0o444, Data: f.data})
	}
	for i, n := range t {
		if n.Kind == Proc && o.Limits.V1 {
			t[i].Cgroups = path.Join(cgroups, "proc")
		}
	}
	return t
}

// Cgroup is the path of the node above a cgroup2; "" if there is none.
func (t Table) Cgroup() string {
	for _, n := range t {
		if n.Cgroup {
			return n.Path
		}
	}
	return ""
}
