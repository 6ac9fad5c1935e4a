package engine

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/ns"
)

// limitRow is a limit and the enforcers that it could have.
type limitRow struct {
	name  LimitName
	value string
	asked bool // by the Spec
	// by are enforcers in order of preference: the first that can be had is taken.
	by []enforcement
	// lost is given up where none of them can be had.
	lost Protection
	// controller of a cgroup that could enforce it; "" if none could.
	controller string
}

// enforcement is an enforcer that may be there.
type enforcement struct {
	Enforcer
	have bool
	set  func()
}

// decideLimits finds an enforcer for each limit. A cgroup comes first: only the
// kernel knows what a sandbox uses at any time, and who used it.
func (pl *planner) decideLimits() {
	pl.config.Watch = box.Watch{Memory: box.Unlimited, Pids: box.Unlimited}
	if pl.spec.FS.Upper != "" && pl.workspace != nil {
		pl.config.Watch.OnDisk = []string{filepath.Clean(pl.spec.FS.Workspace), pl.workspace.Path}
	}
	for _, row := range pl.limitTable() {
		pl.decideLimit(row)
	}
	if pl.plan.Level == LevelNamespaces || pl.plan.Level == LevelLandlock {
		pl.countCPUTime()
	}
	for _, c := range pl.config.Cgroup.Controllers() {
		if c != "memory" && c != "pids" && pl.host.Cgroup.Managed() {
			pl.note("systemd manages %s, and turns the controller %s off there "+
				"when none of its own units needs it any more: --systemd-scope",
				pl.host.Cgroup.Dir, c)
		}
	}
	pl.checkRequired()
}

// limitTable is every limit of the sandbox, in the order in which a Plan prints
// them.
func (pl *planner) limitTable() []limitRow {
	l, asked := pl.limits, pl.spec.Limits
	engine := []enforcement{{Enforcer: Enforcer{Kind: ByEngine}, have: true}}
	tmpfs := []enforcement{{Enforcer: Enforcer{Kind: ByTmpfs}, have: pl.hasNamespaces()}} // else directories of the host's
	rows := []limitRow{
		{name: LimitWall, value: text(l.Wall), by: engine},
		pl.memory(),
		pl.groupOnly(LimitMemoryHigh, "memory.high", text(l.MemoryHigh), asked.MemoryHigh != 0, ProtectMemory,
			func(s *cgroup.Settings) { s.MemoryHigh = int64(l.MemoryHigh) }),
		pl.groupOnly(LimitCPUs, "cpu.max", fmt.Sprint(l.CPUs), l.CPUs != 0 && l.CPUs < math.MaxInt64, ProtectCPUs,
			func(s *cgroup.Settings) { s.CPUs = l.CPUs }),
		pl.groupOnly(LimitCPUWeight, "cpu.weight", text(l.CPUWeight), l.CPUWeight != 0, ProtectCPUs,
			func(s *cgroup.Settings) { s.CPUWeight = l.CPUWeight }),
		pl.groupOnly(LimitCPUSet, "cpuset.cpus", l.CPUSet, l.CPUSet != "", ProtectCPUs,
			func(s *cgroup.Settings) { s.CPUSet = l.CPUSet }),
		pl.pids(),
	}
	for i, io := range l.IO {
		rows = append(rows, pl.io(i, io))
	}
	rows = append(rows, pl.rlimits()...)
	rows = append(rows,
		limitRow{name: LimitTmp, value: text(l.Tmp), by: tmpfs},
		limitRow{name: LimitTmpFiles, value: text(l.TmpFiles), by: tmpfs})
	if pl.budgeted() {
		pl.plan.budget = filepath.Clean(pl.workspace.Path)
		rows = append(rows, limitRow{name: LimitWorkspace, value: text(l.Workspace),
			by: []enforcement{{Enforcer: Enforcer{Kind: ByWatchdog}, have: true}}})
	}
	return append(rows,
		limitRow{name: LimitOutput, value: text(l.Output), by: engine},
		limitRow{name: LimitDiscard, value: text(l.Discard), by: engine},
		limitRow{name: LimitToolCalls, value: text(l.ToolCalls), by: engine},
		limitRow{name: LimitToolCallsAtOnce, value: text(l.ToolCallsAtOnce), by: engine},
		limitRow{name: LimitToolTime, value: text(l.ToolTime), by: engine},
		limitRow{name: LimitFrame, value: text(l.Frame), by: engine})
}

// decideLimit takes the first enforcer that can be had. Without one a default
// limit is dropped and recorded in Plan.Dropped; a limit that the Spec asks for is
// an error unless Degrade accepts that it is lost.
func (pl *planner) decideLimit(row limitRow) {
	if row.name == "" {
		return
	}
	limit := Limit{Name: row.name, Value: row.value}
	i := slices.IndexFunc(row.by, func(e enforcement) bool { return e.have })
	switch {
	case row.value == unlimited:
	case i >= 0:
		limit.Enforcers = []Enforcer{row.by[i].Enforcer}
		if set := row.by[i].set; set != nil {
			set()
		}
	case row.lost != "":
		if !pl.giveUp(row) {
			return
		}
		if !row.asked {
			limit.Value = unlimited
		}
	}
	pl.plan.Limits = append(pl.plan.Limits, limit)
}

// giveUp drops a limit that nothing enforces, or refuses to.
func (pl *planner) giveUp(row limitRow) bool {
	unsupported := func(format string, args ...any) error {
		return &UnsupportedError{Feature: fmt.Sprintf("limit %s=%s", row.name, row.value),
			Remedy: fmt.Sprintf(format, args...), Field: limitPath(row.name), Value: row.value}
	}
	if row.controller == "" {
		why := fmt.Sprintf("nothing limits %s on %s with isolation %s", row.name, pl.host.OS, pl.plan.Level)
		if row.asked && !pl.accepts(row.lost) {
			pl.fail(unsupported("%s: leave the limit out, or accept running without it (degrade %s)", why, row.lost))
			return false
		}
		pl.drop(row.lost, why)
		return true
	}
	why, remedy := pl.noCgroup(row.controller)
	if !pl.accepts(row.lost) {
		pl.fail(unsupported("it needs a cgroup: %s; %sleave the limit out, or accept running without it (degrade %s)",
			why, remedy, row.lost))
		return false
	}
	pl.drop(row.lost, fmt.Sprintf("limiting %s needs a cgroup: %s", row.name, why))
	return true
}

// hasController reports whether the sandbox can have a cgroup with a controller.
func (pl *planner) hasController(controller string) bool {
	return pl.hasNamespaces() && pl.host.Cgroup.Has(controller)
}

func (pl *planner) byGroup(controller, file string, set func(*cgroup.Settings)) enforcement {
	return enforcement{Enforcer{ByCgroup, file}, pl.hasController(controller), func() { set(&pl.config.Cgroup) }}
}

// groupOnly is a limit that only a cgroup enforces, if the Spec asks for it.
func (pl *planner) groupOnly(
	name LimitName, file, value string, asked bool, lost Protection, set func(*cgroup.Settings),
) limitRow {
	if !asked || value == unlimited {
		return limitRow{}
	}
	controller, _, _ := strings.Cut(file, ".")
	return limitRow{name: name, value: value, asked: true, lost: lost, controller: controller,
		by: []enforcement{pl.byGroup(controller, file, set)}}
}

func (pl *planner) memory() limitRow {
	l := pl.limits
	asked := pl.spec.Limits.Memory != 0
	return limitRow{name: LimitMemory, value: text(l.Memory), asked: asked, lost: ProtectMemory, by: []enforcement{
		pl.byGroup("memory", "memory.max", func(s *cgroup.Settings) { s.Memory = int64(l.Memory) }),
		// No RLIMIT_DATA besides: what that refuses leaves no trace by which a
		// guest that goes on without could be told from one that met no limit.
		{Enforcer{Kind: ByWatchdog}, !pl.usesProcessGroups(), func() { pl.config.Watch.Memory = int64(l.Memory) }},
	}}
}

func (pl *planner) pids() limitRow {
	n := pl.limits.Pids
	row := limitRow{name: LimitPids, value: text(n), by: []enforcement{
		pl.byGroup("pids", "pids.max", func(s *cgroup.Settings) { s.Pids = int64(n) }),
		// RLIMIT_NPROC would count all of the user's processes on the host.
		{Enforcer{Kind: ByWatchdog}, !pl.hasNamespaces(), func() { pl.config.Watch.Pids, pl.config.Watch.Kill = n, true }},
	}}
	if pl.hasNamespaces() && !pl.hasController("pids") && n != UnlimitedCount {
		pl.config.Watch.Pids = n // to see it reached, which the kernel does not tell
		return pl.rlimit(LimitPids, "nproc", uint64(n), text(n), pl.spec.Limits.Pids != 0)
	}
	return row
}

func (pl *planner) io(i int, l IOLimit) limitRow {
	value := fmt.Sprintf("%s read %s and %d, write %s and %d a second", l.Device,
		text(cmp.Or(l.ReadBPS, UnlimitedBytes)), l.ReadIOPS, text(cmp.Or(l.WriteBPS, UnlimitedBytes)), l.WriteIOPS)
	value = strings.NewReplacer(" and 0,", ",", " and 0 ", " ").Replace(value)
	device := ""
	if pl.host.Device != nil {
		var err error
		if device, err = pl.host.Device(l.Device); err != nil {
			pl.fail(hostError(at("limits.io", i)+".device", l.Device, err))
			return limitRow{}
		}
	}
	return pl.groupOnly(LimitIO, "io.max", value, true, ProtectIO, func(s *cgroup.Settings) {
		s.IO = append(s.IO, cgroup.IO{Device: device, ReadBPS: int64(l.ReadBPS), WriteBPS: int64(l.WriteBPS),
			ReadIOPS: int64(l.ReadIOPS), WriteIOPS: int64(l.WriteIOPS)})
	})
}

// rlimits are the limits of each process.
func (pl *planner) rlimits() []limitRow {
	l, asked := pl.limits, pl.spec.Limits
	cpu := uint64(box.Unlimited)
	if l.CPUTime != UnlimitedTime {
		cpu = uint64((l.CPUTime + time.Second - 1) / time.Second)
	}
	rows := []limitRow{
		pl.rlimit(LimitCPUTime, "cpu", cpu, text(l.CPUTime), asked.CPUTime != 0),
		pl.rlimit(LimitFiles, "nofile", uint64(l.Files), text(l.Files), asked.Files != 0),
		pl.rlimit(LimitFileSize, "fsize", uint64(l.FileSize), text(l.FileSize), asked.FileSize != 0),
	}
	switch {
	case pl.host.OS == "linux":
		rows = append(rows,
			pl.rlimit(LimitAddressSpace, "as", uint64(l.AddressSpace), text(l.AddressSpace), asked.AddressSpace != 0))
	case l.AddressSpace != UnlimitedBytes: // macOS takes RLIMIT_AS, and does not keep to it
		rows = append(rows, limitRow{name: LimitAddressSpace, value: text(l.AddressSpace), asked: true, lost: ProtectMemory})
	}
	if pl.usesProcessGroups() {
		return append(rows, pl.rlimit(LimitCore, "core", 0, "none", false))
	}
	return append(rows,
		// 1 and not 0, which the kernel does not apply to a core that is piped to a
		// program of the host's (core(5)); a file needs more than 1.
		pl.rlimit(LimitCore, "core", 1, "none", false),
		// What a host may have given its own processes beyond the kernel's defaults.
		pl.rlimit(LimitMemlock, "memlock", uint64(8*MiB), (8*MiB).String(), false),
		pl.rlimit(LimitNice, "nice", 0, "0", false),
		pl.rlimit(LimitRTPrio, "rtprio", 0, "0", false))
}

// manyFiles is the hard limit to open files where the Spec asks for none: systemd's
// default for services (systemd.exec(5)). The soft one is what select(2) can do.
const manyFiles = 524288

// rlimit is a limit of each process. It is never above this process's own.
func (pl *planner) rlimit(name LimitName, rlim string, value uint64, text string, asked bool) limitRow {
	hard, known := pl.host.HardLimits[rlim]
	if known && value > hard {
		if asked && value != box.Unlimited {
			pl.fail(invalidField(limitPath(name), "", "%s exceeds this process's hard limit of %d", text, hard))
		}
		value, text = hard, fmt.Sprint(hard)
	}
	if value >= box.Unlimited {
		return limitRow{name: name, value: unlimited}
	}
	above := value
	if rlim == "cpu" {
		// At the soft limit the kernel sends SIGXCPU, at the hard one SIGKILL; were they
		// the same there would be only SIGKILL, which could come from anywhere.
		above++
	}
	if rlim == "nofile" && !asked {
		above = manyFiles // for programs that raise their own limit
	}
	if known {
		above = min(above, hard) // which nobody can raise
	}
	return limitRow{name: name, value: text, by: []enforcement{{Enforcer{ByRlimit, rlim}, true, func() {
		pl.config.Rlimits = append(pl.config.Rlimits, ns.Rlimit{Name: rlim, Soft: value, Hard: above})
	}}}}
}

// countCPUTime adds who counts the CPU time of a command and all its descendants:
// the kernel enforces it for each process alone.
func (pl *planner) countCPUTime() {
	by := Enforcer{Kind: ByWatchdog}
	if len(pl.config.Cgroup.Controllers()) > 0 {
		by = Enforcer{ByCgroup, "cpu.stat"}
	}
	for i := range pl.plan.Limits {
		if l := &pl.plan.Limits[i]; l.Name == LimitCPUTime && l.Enforcers != nil {
			l.Enforcers = append(l.Enforcers, by)
		}
	}
}

// budgeted reports whether what is added to the workspace is watched: it is the
// host's own directory, and the Spec asks for that.
func (pl *planner) budgeted() bool {
	return pl.workspace != nil && !pl.overlaid() && pl.spec.Limits.Workspace != 0 && pl.limits.Workspace != UnlimitedBytes
}

// noCgroup returns why there is none with a controller, and what can be done.
func (pl *planner) noCgroup(controller string) (why, remedy string) {
	at := pl.host.Cgroup
	switch {
	case pl.usesProcessGroups():
		return fmt.Sprintf("isolation %s has none on %s", pl.plan.Level, pl.host.OS), ""
	case !pl.hasNamespaces():
		return "a sandbox without namespaces has none", ""
	case at.Dir == "":
		why, remedy = cmp.Or(at.Reason, "this system has none"), at.Remedy
	default:
		why = fmt.Sprintf("%s has no controller %s", at.Dir, controller)
		remedy = "have it delegated (Delegate=" + controller + ")"
	}
	if remedy != "" {
		remedy += "; or "
	}
	return why, remedy
}

// checkRequired compares what the Spec requires with what was decided.
func (pl *planner) checkRequired() {
	for i, r := range pl.spec.Require {
		met := func(l Limit) bool { return l.Name == r.Limit && l.enforcedBy(r.Enforcer) }
		if slices.ContainsFunc(pl.plan.Limits, met) {
			continue
		}
		e := &UnsupportedError{Feature: fmt.Sprintf("limit %s by %s, which is required", r.Limit, r.Enforcer),
			Field: at("require", i)}
		if r.Enforcer == ByCgroup {
			why, remedy := pl.noCgroup(string(r.Limit))
			e.Remedy = strings.TrimSuffix(strings.TrimSuffix(why+"; "+remedy, "; "), "; or")
		}
		pl.fail(e)
	}
}

func checkRequire(s Spec) (errs []error) {
	for i, r := range s.Require {
		value := fmt.Sprintf("%s=%s", r.Limit, r.Enforcer)
		if !slices.Contains(EnforcerKinds(), r.Enforcer) {
			errs = append(errs, invalidField(at("require", i), value, "the enforcers are %s", list(EnforcerKinds())))
		}
		if !slices.Contains(limitNames(), r.Limit) {
			errs = append(errs, invalidField(at("require", i), value, "the limits are %s", list(limitNames())))
		}
	}
	return errs
}

// list joins names for a message.
func list[T ~string](names []T) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}
