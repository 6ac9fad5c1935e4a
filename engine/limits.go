package engine

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// The values that stand for no limit at all.
const (
	UnlimitedTime  time.Duration = math.MaxInt64
	UnlimitedBytes Bytes         = math.MaxInt64
	UnlimitedCount int           = math.MaxInt
)

// Limits bounds what a sandbox uses up. 0 is the default given with each field; a
// negative number is invalid; UnlimitedTime, UnlimitedBytes and UnlimitedCount are
// no limit. A guest cannot raise a limit. Plan.Limits names who enforces each.
type Limits struct {
	Wall time.Duration // of each command; default 1 hour
	// CPUTime is of each process, in whole seconds: SIGXCPU, and SIGKILL a second
	// later. It also bounds each command together with all that descends from it,
	// which ends a second later; concurrent commands share that budget.
	// Default 1 hour.
	CPUTime time.Duration

	// Memory bounds the sandbox's processes, the files in its private tmpfs and,
	// with a cgroup, what the kernel holds for it. There is no swap on top of it.
	// Default: half of what this process may have.
	Memory       Bytes
	MemoryHigh   Bytes // above it processes are slowed down and their memory is reclaimed; default none; needs a cgroup
	AddressSpace Bytes // of each process (RLIMIT_AS); default none, since much software reserves more than it uses

	CPUs      float64   // CPUs at once, 0.01 or more; default all; needs a cgroup
	CPUWeight int       // 1 to 10000, relative to the machine's other processes; default 100; needs a cgroup
	CPUSet    string    // the CPUs to run on, "0-2,5"; default all; needs a cgroup
	IO        []IOLimit // by device; default none; needs a cgroup

	Pids int // processes and threads at once; default 512
	// Files is how many descriptors each process may have open, 4 or more. By default it
	// is 1024, and programs that raise their limit can have up to 524288 (node, Java).
	Files    int
	FileSize Bytes // of a file that is written; default 1 GiB
	Tmp      Bytes // of each private tmpfs, which counts as memory; default 1 GiB
	TmpFiles int   // files and directories of each private tmpfs; default 65536
	// Workspace bounds what is written to a workspace of mode overlay, which holds
	// TmpFiles files and directories; default 256 MiB. A workspace of mode rw is
	// watched only if a limit is given: commands are ended a few tenths of a second
	// after its files have grown by that much since the first command started.
	Workspace Bytes
	Output    Bytes // of each stream kept in a Result; default 1 MiB
	// Discard is how much more of a stream is read and dropped before the
	// command is ended; default 1 GiB.
	Discard Bytes

	ToolCalls       int           // calls of tools by a command; default 1000
	ToolCallsAtOnce int           // served at the same time; others wait; default 32
	ToolTime        time.Duration // of a call; default none, since Wall covers it
	// Frame is of a message to or from a guest, and so of a tool's arguments or value:
	// 4 KiB to 1 GiB; default 8 MiB.
	Frame Bytes
}

// IOLimit bounds what a sandbox reads from and writes to a block device of the
// host. It needs a cgroup. 0 is no limit.
type IOLimit struct {
	Device              string // its path, "/dev/sda": the whole device, not a partition
	ReadBPS, WriteBPS   Bytes  // per second
	ReadIOPS, WriteIOPS int    // operations per second
}

// DefaultTmp is Limits.Tmp where that is 0.
const DefaultTmp = GiB

// LimitName names a limit, as Plan.Limits, Event and Requirement do.
type LimitName string

// The limits. Those without a field in Limits are the same for every sandbox.
const (
	LimitWall            LimitName = "wall"
	LimitCPUTime         LimitName = "cputime"
	LimitMemory          LimitName = "memory"
	LimitMemoryHigh      LimitName = "memoryhigh"
	LimitAddressSpace    LimitName = "addressspace"
	LimitCPUs            LimitName = "cpus"
	LimitCPUWeight       LimitName = "cpuweight"
	LimitCPUSet          LimitName = "cpuset"
	LimitIO              LimitName = "io"
	LimitPids            LimitName = "pids"
	LimitFiles           LimitName = "files"
	LimitFileSize        LimitName = "filesize"
	LimitTmp             LimitName = "tmp"
	LimitTmpFiles        LimitName = "tmpfiles"
	LimitWorkspace       LimitName = "workspace"
	LimitOutput          LimitName = "output"
	LimitDiscard         LimitName = "discard"
	LimitToolCalls       LimitName = "toolcalls"
	LimitToolCallsAtOnce LimitName = "toolcallsatonce"
	LimitToolTime        LimitName = "tooltime"
	LimitFrame           LimitName = "frame"

	LimitCore    LimitName = "core"    // core dumps: none
	LimitMemlock LimitName = "memlock" // locked memory of each process: 8 MiB
	LimitNice    LimitName = "nice"    // raising the priority: none
	LimitRTPrio  LimitName = "rtprio"  // real-time priority: none
)

// EnforcerKind is who enforces a limit.
type EnforcerKind string

// The enforcers.
const (
	ByCgroup EnforcerKind = "cgroup" // the kernel, for the whole sandbox
	ByRlimit EnforcerKind = "rlimit" // the kernel, for each process
	ByTmpfs  EnforcerKind = "tmpfs"  // the kernel, for a private file system
	ByEngine EnforcerKind = "engine" // this process, with a clock or by counting
	// ByWatchdog is this process, which looks from time to time: what it ends may have
	// had more for some milliseconds.
	ByWatchdog EnforcerKind = "watchdog"
)

// EnforcerKinds lists the enforcers.
func EnforcerKinds() []EnforcerKind {
	return []EnforcerKind{ByCgroup, ByRlimit, ByTmpfs, ByWatchdog, ByEngine}
}

// Enforcer enforces a limit.
type Enforcer struct {
	Kind   EnforcerKind // what kind of thing enforces it
	Detail string       // the cgroup's file or the resource: "memory.max", "nofile"; "" if Kind says it all
}

func (e Enforcer) String() string { return strings.TrimSpace(string(e.Kind) + " " + e.Detail) }

// Limit is a limit as a Plan decided it.
type Limit struct {
	Name      LimitName  // which limit: "memory"
	Value     string     // "64MiB", "1h0m0s", "512", "unlimited"
	Enforcers []Enforcer // nil: nothing enforces it
}

// String is the line that a Plan prints.
func (l Limit) String() string {
	by := make([]string, len(l.Enforcers))
	for i, e := range l.Enforcers {
		by[i] = e.String()
	}
	return fmt.Sprintf("%s %s (%s)", l.Name, l.Value, cmp.Or(strings.Join(by, ", "), "nothing"))
}

// enforcedBy reports whether an enforcer of that kind is among those of the limit.
func (l Limit) enforcedBy(kind EnforcerKind) bool {
	for _, e := range l.Enforcers {
		if e.Kind == kind {
			return true
		}
	}
	return false
}

// limitField is a field of Limits that is a number: its name, its name in JSON, where
// it is, and its default. 0 is a default that depends on the machine, or none.
type limitField struct {
	name  LimitName
	json  string
	at    func(*Limits) number
	value int64
}

// number is a field, whatever its type.
type number struct {
	get  int64
	set  func(int64)
	json any // the pointer to it, for jsonMember.at
}

func field[T time.Duration | Bytes | int](at func(*Limits) *T) func(*Limits) number {
	return func(l *Limits) number {
		p := at(l)
		n := number{get: int64(*p), set: func(v int64) { *p = T(v) }, json: p}
		if count, ok := any(p).(*int); ok {
			n.json = (*jsonCount)(count)
		}
		return n
	}
}

// limitFields lists them. To add a limit: a field in Limits, a name, a line here,
// one in planner.limitTable, and its description in docs/schema.
var limitFields = []limitField{
	{LimitWall, "wall_seconds", field(func(l *Limits) *time.Duration { return &l.Wall }), int64(time.Hour)},
	{LimitCPUTime, "cpu_time_seconds", field(func(l *Limits) *time.Duration { return &l.CPUTime }), int64(time.Hour)},
	{LimitMemory, "memory_bytes", field(func(l *Limits) *Bytes { return &l.Memory }), 0},
	{LimitMemoryHigh, "memory_high_bytes", field(func(l *Limits) *Bytes { return &l.MemoryHigh }), math.MaxInt64},
	{LimitAddressSpace, "address_space_bytes", field(func(l *Limits) *Bytes { return &l.AddressSpace }), math.MaxInt64},
	{LimitCPUWeight, "cpu_weight", field(func(l *Limits) *int { return &l.CPUWeight }), 0},
	{LimitPids, "pids", field(func(l *Limits) *int { return &l.Pids }), 512},
	{LimitFiles, "files", field(func(l *Limits) *int { return &l.Files }), 1024},
	{LimitFileSize, "file_size_bytes", field(func(l *Limits) *Bytes { return &l.FileSize }), int64(GiB)},
	{LimitTmp, "tmp_bytes", field(func(l *Limits) *Bytes { return &l.Tmp }), int64(DefaultTmp)},
	{LimitTmpFiles, "tmp_files", field(func(l *Limits) *int { return &l.TmpFiles }), 65536},
	{LimitWorkspace, "workspace_bytes", field(func(l *Limits) *Bytes { return &l.Workspace }), int64(256 * MiB)},
	{LimitOutput, "output_bytes", field(func(l *Limits) *Bytes { return &l.Output }), int64(MiB)},
	{LimitDiscard, "discard_bytes", field(func(l *Limits) *Bytes { return &l.Discard }), int64(GiB)},
	{LimitToolCalls, "tool_calls", field(func(l *Limits) *int { return &l.ToolCalls }), 1000},
	{LimitToolCallsAtOnce, "tool_calls_at_once", field(func(l *Limits) *int { return &l.ToolCallsAtOnce }), 32},
	{LimitToolTime, "tool_time_seconds", field(func(l *Limits) *time.Duration { return &l.ToolTime }), math.MaxInt64},
	{LimitFrame, "frame_bytes", field(func(l *Limits) *Bytes { return &l.Frame }), int64(8 * MiB)},
}

// limitPath is where a limit stands in the JSON of a Spec; "" if a Spec cannot set it.
func limitPath(name LimitName) string {
	for _, f := range limitFields {
		if f.name == name {
			return "limits." + f.json
		}
	}
	for key, other := range otherLimits {
		if other == name {
			return "limits." + key
		}
	}
	return ""
}

// limitOf is the limit that has a name in JSON. One that is unknown names itself.
func limitOf(key string) LimitName {
	for _, f := range limitFields {
		if f.json == key {
			return f.name
		}
	}
	return cmp.Or(otherLimits[key], LimitName(key))
}

// otherLimits are the fields of Limits that are no whole numbers, by their names in JSON.
var otherLimits = map[string]LimitName{"cpus": LimitCPUs, "cpu_set": LimitCPUSet, "io": LimitIO}

// limitNames are those that a Plan can have, and so a Requirement.
func limitNames() []LimitName {
	names := []LimitName{LimitCPUs, LimitCPUSet, LimitIO, LimitCore, LimitMemlock, LimitNice, LimitRTPrio}
	for _, f := range limitFields {
		names = append(names, f.name)
	}
	return names
}

func (l Limits) withDefaults(h Host) Limits {
	l.Memory = cmp.Or(l.Memory, Bytes(h.MemoryBytes)/2/MiB*MiB, UnlimitedBytes)
	for _, f := range limitFields {
		if n := f.at(&l); n.get == 0 {
			n.set(f.value)
		}
	}
	return l
}

// text is a limit's value as a Plan prints it.
func text[T time.Duration | Bytes | int](v T) string {
	if int64(v) == math.MaxInt64 {
		return unlimited
	}
	return fmt.Sprint(v)
}

const unlimited = "unlimited"
