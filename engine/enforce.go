package engine

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/cgroup"
)

// The enforcers of limits, as Plan.Limits and Requirement name them.
const (
	byCgroup   = "cgroup"
	byRlimit   = "rlimit"
	byTmpfs    = "tmpfs"
	byWatchdog = "watchdog"
	byEngine   = "engine"
)

// limitNames are those that Plan.Limits may have.
var limitNames = []string{
	"wall", "memory", "memoryhigh", "cpus", "cpuweight", "cpuset", "pids", "io", "cputime", "files", "filesize", "addressspace",
	"core", "memlock", "nice", "rtprio", "tmp", "tmpfiles", "workspace", "output", "discard", "toolcalls", "toolcallsatonce", "tooltime", "frame",
}

// watch is what the engine itself has to look after while commands run.
type watch struct {
	memory Bytes // Unlimited: nothing
	pids   int   // at which forks are refused, or, where kill is set, are too many
	kill   bool
	onDisk []string // where overlays are that take no memory
}

func (w watch) anything() bool { return w.memory < Unlimited || w.pids < Unlimited }

// decideLimits names an enforcer for each limit. A cgroup comes first: only the
// kernel knows what a sandbox uses at any time, and who used it.
func (p *Plan) decideLimits(h Host) error {
	l := p.limits
	p.watch = watch{memory: Unlimited, pids: Unlimited}
	if p.Spec.FS.Upper != "" && p.workspace != nil {
		p.watch.onDisk = []string{filepath.Clean(p.Spec.FS.Workspace), p.workspace.Path}
	}
	p.limit("wall", duration(l.Wall), byEngine)
	errs := []error{p.decideMemory(h), p.decideCPU(h), p.decidePids(h), p.decideIO(h), p.decideRlimits(h)}
	tmpfs := byTmpfs
	if p.bare() {
		tmpfs = "" // they are directories of the host's
	}
	p.limit("tmp", limitText(l.Tmp), tmpfs)
	p.limit("tmpfiles", count(l.TmpFiles), tmpfs)
	p.decideBudget()
	p.limit("output", limitText(l.Output), byEngine)
	p.limit("discard", limitText(l.Discard), byEngine)
	p.limit("toolcalls", count(l.ToolCalls), byEngine)
	p.limit("toolcallsatonce", count(l.ToolCallsAtOnce), byEngine)
	p.limit("tooltime", duration(l.ToolTime), byEngine)
	p.limit("frame", limitText(l.Frame), byEngine)
	for _, c := range p.cgroup.Controllers() {
		if c != "memory" && c != "pids" && h.Cgroup.Managed() {
			p.notes = append(p.notes, "systemd manages "+h.Cgroup.Dir+", and turns the controller "+c+" off there when none of its own units needs it any more: --systemd-scope")
		}
	}
	return errors.Join(append(errs, p.checkRequired(h))...)
}

func (p *Plan) limit(name, value, enforcer string) {
	if value == "unlimited" {
		enforcer = ""
	}
	p.Limits = append(p.Limits, Limit{name, value, enforcer})
}

// has tells whether the sandbox can have a cgroup with a controller.
func (p *Plan) has(h Host, controller string) bool { return !p.bare() && h.Cgroup.Has(controller) }

func (p *Plan) decideMemory(h Host) error {
	l := p.limits
	switch {
	case l.Memory == Unlimited:
		p.limit("memory", "unlimited", "")
	case p.has(h, "memory"):
		p.cgroup.Memory = int64(l.Memory)
		p.limit("memory", limitText(l.Memory), byCgroup+" memory.max")
	case p.plain():
		if err := p.unenforced("memory", limitText(l.Memory), ProtectMemory, p.Spec.Limits.Memory != 0); err != nil {
			return err
		}
	default:
		// No RLIMIT_DATA besides: what that refuses leaves no trace by which a
		// guest that goes on without could be told from one that met no limit.
		p.watch.memory = l.Memory
		p.limit("memory", limitText(l.Memory), byWatchdog)
	}
	if l.MemoryHigh == Unlimited {
		return nil
	}
	return p.needs(h, "memory", "memoryhigh", limitText(l.MemoryHigh), "memory.high", ProtectMemory, func() { p.cgroup.MemoryHigh = int64(l.MemoryHigh) })
}

// unenforced is for a limit that nothing enforces on this system. The default is
// then given up, and what the Spec asks for has to be accepted to be.
func (p *Plan) unenforced(name, value string, what Protection, explicit bool) error {
	why := fmt.Sprintf("nothing limits %s on %s with isolation %s", name, p.system, p.Level)
	if explicit && !p.accepts(what) {
		return &UnsupportedError{Feature: fmt.Sprintf("limit %s=%s", name, value), Remedy: fmt.Sprintf("%s: leave the limit out, or accept to run without it (degrade %s)", why, what)}
	}
	p.Dropped = append(p.Dropped, Dropped{what, why})
	if !explicit {
		value = "unlimited"
	}
	p.limit(name, value, "")
	return nil
}

func (p *Plan) decideCPU(h Host) error {
	l := p.limits
	var errs []error
	if l.CPUs != 0 && l.CPUs < math.MaxInt64 {
		errs = append(errs, p.needs(h, "cpu", "cpus", fmt.Sprint(l.CPUs), "cpu.max", ProtectCPUs, func() { p.cgroup.CPUs = l.CPUs }))
	}
	if l.CPUWeight != 0 && l.CPUWeight != Unlimited {
		errs = append(errs, p.needs(h, "cpu", "cpuweight", fmt.Sprint(l.CPUWeight), "cpu.weight", ProtectCPUs, func() { p.cgroup.CPUWeight = l.CPUWeight }))
	}
	if l.CPUSet != "" {
		errs = append(errs, p.needs(h, "cpuset", "cpuset", l.CPUSet, "cpuset.cpus", ProtectCPUs, func() { p.cgroup.CPUSet = l.CPUSet }))
	}
	return errors.Join(errs...)
}

func (p *Plan) decidePids(h Host) error {
	n := p.limits.Pids
	switch {
	case n == Unlimited:
		p.limit("pids", "unlimited", "")
	case p.has(h, "pids"):
		p.cgroup.Pids = int64(n)
		p.limit("pids", count(n), byCgroup+" pids.max")
	case p.bare():
		// RLIMIT_NPROC would count all of the user's processes on the host.
		p.watch.pids, p.watch.kill = n, true
		p.limit("pids", count(n), byWatchdog)
	default:
		p.watch.pids = n // to see it reached, which the kernel does not tell
		return p.rlimit(h, "pids", "nproc", uint64(n), count(n), p.Spec.Limits.Pids != 0)
	}
	return nil
}

func (p *Plan) decideIO(h Host) error {
	var errs []error
	for _, l := range p.limits.IO {
		text := fmt.Sprintf("%s read %s and %d, write %s and %d a second", l.Device, limitText(orDefault(l.ReadBPS, Unlimited)), l.ReadIOPS, limitText(orDefault(l.WriteBPS, Unlimited)), l.WriteIOPS)
		text = strings.NewReplacer(" and 0,", ",", " and 0 ", " ").Replace(text)
		device := ""
		if h.Device != nil {
			var err error
			if device, err = h.Device(l.Device); err != nil {
				errs = append(errs, hostError("limit io", l.Device, err))
				continue
			}
		}
		errs = append(errs, p.needs(h, "io", "io", text, "io.max", ProtectIO, func() {
			p.cgroup.IO = append(p.cgroup.IO, cgroup.IO{Device: device, ReadBPS: int64(l.ReadBPS), WriteBPS: int64(l.WriteBPS), ReadIOPS: int64(l.ReadIOPS), WriteIOPS: int64(l.WriteIOPS)})
		}))
	}
	return errors.Join(errs...)
}

func (p *Plan) decideRlimits(h Host) error {
	l, asked := p.limits, p.Spec.Limits
	cpu := uint64(Unlimited)
	if l.CPUTime != Unlimited {
		cpu = uint64((l.CPUTime + time.Second - 1) / time.Second)
	}
	errs := []error{
		p.rlimit(h, "cputime", "cpu", cpu, duration(l.CPUTime), asked.CPUTime != 0),
		p.rlimit(h, "files", "nofile", uint64(l.Files), count(l.Files), asked.Files != 0),
		p.rlimit(h, "filesize", "fsize", uint64(l.FileSize), limitText(l.FileSize), asked.FileSize != 0),
	}
	if p.plain() {
		if p.system == "linux" {
			errs = append(errs, p.rlimit(h, "addressspace", "as", uint64(l.AddressSpace), limitText(l.AddressSpace), asked.AddressSpace != 0))
		} else if l.AddressSpace != Unlimited { // macOS takes RLIMIT_AS, and does not keep to it
			errs = append(errs, p.unenforced("addressspace", limitText(l.AddressSpace), ProtectMemory, true))
		}
		return errors.Join(append(errs, p.rlimit(h, "core", "core", 0, "none", false))...)
	}
	errs = append(errs,
		p.rlimit(h, "addressspace", "as", uint64(l.AddressSpace), limitText(l.AddressSpace), asked.AddressSpace != 0),
		// 1 and not 0, which the kernel does not apply to a core that is piped to a
		// program of the host's (core(5)); a file needs more than 1.
		p.rlimit(h, "core", "core", 1, "none", false),
		// What a host may have given its own processes beyond the kernel's defaults.
		p.rlimit(h, "memlock", "memlock", uint64(8*MiB), (8*MiB).String(), false),
		p.rlimit(h, "nice", "nice", 0, "0", false),
		p.rlimit(h, "rtprio", "rtprio", 0, "0", false),
	)
	// The kernel counts by process; what a command and all its descendants have
	// used, the engine asks for.
	for i := range p.Limits {
		if by := &p.Limits[i]; by.Name == "cputime" && by.Enforcer != "" {
			by.Enforcer += ", " + p.accountant(h)
		}
	}
	return errors.Join(errs...)
}

// accountant is what tells the CPU time of the whole sandbox.
func (p *Plan) accountant(h Host) string {
	if p.grouped() {
		return byCgroup + " cpu.stat"
	}
	return byWatchdog
}

// grouped tells whether the sandbox has a cgroup.
func (p *Plan) grouped() bool { return len(p.cgroup.Controllers()) > 0 }

// rlimit adds a resource limit. explicit is whether the Spec asks for it.
func (p *Plan) rlimit(h Host, name, rlim string, value uint64, text string, explicit bool) error {
	var err error
	hard, known := h.Hard[rlim]
	if known && value > hard {
		if explicit && value != Unlimited {
			err = invalid("limit %s: %s is above this process's own hard limit of %d", name, text, hard)
		}
		value, text = hard, fmt.Sprint(hard)
	}
	if value < Unlimited {
		above := value + grace(rlim)
		if known {
			above = min(above, hard) // which nobody can raise
		}
		p.rlimits = append(p.rlimits, rlimit{rlim, value, above})
		p.limit(name, text, byRlimit+" "+rlim)
	} else {
		p.limit(name, "unlimited", "")
	}
	return err
}

// grace is how far the hard limit is above the soft one. At the soft limit of
// CPU time the kernel sends SIGXCPU, at the hard one SIGKILL; were they the
// same there would be only SIGKILL, which could come from anywhere.
func grace(rlim string) uint64 {
	if rlim == "cpu" {
		return 1
	}
	return 0
}

// needs is for what only a cgroup limits; set has it set.
func (p *Plan) needs(h Host, controller, name, value, file string, what Protection, set func()) error {
	if p.has(h, controller) {
		set()
		p.limit(name, value, byCgroup+" "+file)
		return nil
	}
	why, remedy := p.noCgroup(h, controller)
	if p.drop(what, fmt.Sprintf("limiting %s takes a cgroup: %s", name, why)) {
		p.limit(name, value, "")
		return nil
	}
	return &UnsupportedError{Feature: fmt.Sprintf("limit %s=%s", name, value),
		Remedy: fmt.Sprintf("it takes a cgroup: %s; %sleave the limit out, or accept to run without it (degrade %s)", why, remedy, what)}
}

// noCgroup says why there is none with a controller, and what can be done.
func (p *Plan) noCgroup(h Host, controller string) (why, remedy string) {
	switch {
	case p.plain():
		return fmt.Sprintf("isolation %s has none on %s", p.Level, p.system), ""
	case p.bare():
		return "a sandbox without namespaces has none", ""
	case h.Cgroup.Dir == "":
		why, remedy = orDefault(h.Cgroup.Reason, "this system has none"), h.Cgroup.Remedy
	default:
		why = fmt.Sprintf("%s has no controller %s", h.Cgroup.Dir, controller)
		remedy = "have it delegated (Delegate=" + controller + ")"
	}
	if remedy != "" {
		remedy += "; or "
	}
	return why, remedy
}

// checkRequired compares what the Spec requires with what was decided.
func (p *Plan) checkRequired(h Host) error {
	var errs []error
	for _, r := range p.Spec.Require {
		if p.enforces(r) {
			continue
		}
		e := &UnsupportedError{Feature: fmt.Sprintf("limit %s by %s, which is required", r.Limit, r.Enforcer)}
		if r.Enforcer == byCgroup {
			why, remedy := p.noCgroup(h, r.Limit)
			e.Remedy = strings.TrimSuffix(why+"; "+remedy, "; ")
			e.Remedy = strings.TrimSuffix(e.Remedy, "; or")
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

func (p *Plan) enforces(r Requirement) bool {
	for _, l := range p.Limits {
		if l.Name != r.Limit {
			continue
		}
		for by := range strings.SplitSeq(l.Enforcer, ", ") {
			if kind, _, _ := strings.Cut(by, " "); kind == r.Enforcer {
				return true
			}
		}
	}
	return false
}

func duration(d time.Duration) string {
	if d == Unlimited {
		return "unlimited"
	}
	return d.String()
}

func count(n int) string {
	if n == Unlimited {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func limitText(b Bytes) string {
	if b == Unlimited {
		return "unlimited"
	}
	return b.String()
}
