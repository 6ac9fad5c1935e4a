package cgroup

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Settings are the limits of a cgroup. The zero value of each field is none.
type Settings struct {
	Memory     int64   // bytes; no swap on top of it
	MemoryHigh int64   // bytes, above which its processes are slowed down and their memory is reclaimed
	Pids       int64   // processes and threads
	CPUs       float64 // CPUs at once, 0.01 or more
	CPUWeight  int     // 1 to 10000, relative to others'; 100 is everyone's
	CPUSet     string  // CPUs to run on, "0-2,5"
	IO         []IO
}

// IO limits what is read from and written to a block device. 0 is no limit.
type IO struct {
	Device            string // "major:minor", as in /proc/partitions
	ReadBPS, WriteBPS int64  // bytes a second
	ReadIOPS          int64  // operations a second
	WriteIOPS         int64
}

// file is one to write.
type file struct{ name, value string }

// period is that of cpu.max in microseconds, the kernel's default.
const period = 100_000

// MinCPUs is the smallest CPUs that the kernel takes: a millisecond a period.
const MinCPUs = 0.01

// files lists what to write. memory.swap.max comes before memory.max: between
// the two, nothing could be swapped out that should not be.
func (s Settings) files() (files []file) {
	add := func(name string, on bool, value string) {
		if on {
			files = append(files, file{name, value})
		}
	}
	add("memory.swap.max", s.Memory > 0, "0")
	add("memory.max", s.Memory > 0, strconv.FormatInt(s.Memory, 10))
	// Also without one of its own: it is what holds while SetMemory lifts the other.
	high := min(cmp.Or(s.MemoryHigh, math.MaxInt64), cmp.Or(s.Memory, math.MaxInt64))
	add("memory.high", high < math.MaxInt64, strconv.FormatInt(high, 10))
	add("pids.max", s.Pids > 0, strconv.FormatInt(s.Pids, 10))
	add("cpu.max", s.CPUs > 0, fmt.Sprintf("%d %d", int64(math.Ceil(s.CPUs*period)), period))
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
