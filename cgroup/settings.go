package cgroup

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Settings are the limits of a cgroup. The zero value of a field sets no limit.
type Settings struct {
	Memory     int64   // bytes; swap is off
	MemoryHigh int64   // bytes above which the kernel slows processes down and reclaims memory
	Pids       int64   // processes and threads
	CPUs       float64 // CPUs at once, MinCPUs or more
	CPUWeight  int     // CPU share relative to sibling cgroups, 1 to 10000; theirs is 100 by default
	CPUSet     string  // CPUs to run on: "0-2,5"
	IO         []IO    // limits of block devices
}

// IO limits the traffic of a block device. The zero value of a field sets no limit.
type IO struct {
	Device              string // "major:minor", as in /proc/partitions
	ReadBPS, WriteBPS   int64  // bytes per second
	ReadIOPS, WriteIOPS int64  // operations per second
}

// file is a control file and the value to write to it.
type file struct{ name, value string }

// periodUS is the period of cpu.max in microseconds, the kernel's default.
const periodUS = 100_000

// MinCPUs is the smallest CPU limit that the kernel accepts: a millisecond a period.
const MinCPUs = 0.01

// files lists what to write. memory.swap.max comes before memory.max, so that nothing
// is swapped out in between.
func (s Settings) files() (files []file) {
	add := func(name string, on bool, value string) {
		if on {
			files = append(files, file{name, value})
		}
	}
	add("memory.swap.max", s.Memory > 0, "0")
	add("memory.max", s.Memory > 0, strconv.FormatInt(s.Memory, 10))
	// Set even without MemoryHigh: it limits memory while SetMemory has lifted memory.max.
	high := min(cmp.Or(s.MemoryHigh, math.MaxInt64), cmp.Or(s.Memory, math.MaxInt64))
	add("memory.high", high < math.MaxInt64, strconv.FormatInt(high, 10))
	add("pids.max", s.Pids > 0, strconv.FormatInt(s.Pids, 10))
	add("cpu.max", s.CPUs > 0, fmt.Sprintf("%d %d", int64(math.Ceil(s.CPUs*periodUS)), periodUS))
	add("cpu.weight", s.CPUWeight > 0, strconv.Itoa(s.CPUWeight))
	add("cpuset.cpus", s.CPUSet != "", s.CPUSet)
	for _, io := range s.IO {
		var b strings.Builder
		b.WriteString(io.Device)
		for _, l := range []struct {
			name  string
			value int64
		}{{"rbps", io.ReadBPS}, {"wbps", io.WriteBPS}, {"riops", io.ReadIOPS}, {"wiops", io.WriteIOPS}} {
			if l.value > 0 {
				fmt.Fprintf(&b, " %s=%d", l.name, l.value)
			}
		}
		add("io.max", true, b.String())
	}
	return files
}

// Controllers lists the controllers that the settings need, sorted.
func (s Settings) Controllers() []string {
	var names []string
	for _, f := range s.files() {
		name, _, _ := strings.Cut(f.name, ".")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
