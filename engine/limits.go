package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

func (l Limits) withDefaults() Limits {
	l.Wall = orDefault(l.Wall, time.Hour)
	l.CPUTime = orDefault(l.CPUTime, time.Hour)
	l.Pids = orDefault(l.Pids, 512)
	l.Files = orDefault(l.Files, 1024)
	l.FileSize = orDefault(l.FileSize, GiB)
	l.Tmp = orDefault(l.Tmp, 256*MiB)
	l.TmpFiles = orDefault(l.TmpFiles, 65536)
	l.Output = orDefault(l.Output, MiB)
	l.AddressSpace = orDefault(l.AddressSpace, Unlimited)
	return l
}

func (p *Plan) decideLimits(h Host) error {
	l := p.limits
	cpu := uint64(Unlimited)
	if l.CPUTime != Unlimited {
		cpu = uint64((l.CPUTime + time.Second - 1) / time.Second)
	}
	asked := p.Spec.Limits
	var errs []error
	add := func(name, rlim string, value uint64, text string, explicit bool) {
		if hard, ok := h.Hard[rlim]; ok && value > hard {
			if explicit && value != Unlimited {
				errs = append(errs, invalid("limit %s: %s is above this process's own hard limit of %d", name, text, hard))
			}
			value, text = hard, fmt.Sprint(hard)
		}
		if value < Unlimited {
			p.rlimits = append(p.rlimits, rlimit{rlim, value, value + grace(rlim)})
			p.Limits = append(p.Limits, Limit{name, text, "rlimit " + rlim})
		} else {
			p.Limits = append(p.Limits, Limit{name, "unlimited", ""})
		}
	}
	p.Limits = append(p.Limits, Limit{"wall", duration(l.Wall), "engine"})
	add("cputime", "cpu", cpu, duration(l.CPUTime), asked.CPUTime != 0)
	add("pids", "nproc", uint64(l.Pids), fmt.Sprint(l.Pids), asked.Pids != 0)
	add("files", "nofile", uint64(l.Files), fmt.Sprint(l.Files), asked.Files != 0)
	add("filesize", "fsize", uint64(l.FileSize), l.FileSize.String(), asked.FileSize != 0)
	add("addressspace", "as", uint64(l.AddressSpace), l.AddressSpace.String(), asked.AddressSpace != 0)
	add("core", "core", 0, "0B", false)
	p.Limits = append(p.Limits,
		Limit{"tmp", limitText(l.Tmp), "tmpfs"}, Limit{"tmpfiles", fmt.Sprint(l.TmpFiles), "tmpfs"}, Limit{"output", limitText(l.Output), "engine"})
	errs = append(errs,
		p.needsCgroup(ProtectMemory, asked.Memory != 0 && asked.Memory != Unlimited, asked.Memory.String()),
		p.needsCgroup(ProtectCPUs, asked.CPUs != 0 && asked.CPUs < math.MaxInt64, fmt.Sprint(asked.CPUs)))
	return errors.Join(errs...)
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

// needsCgroup is for limits that nothing in this version enforces.
func (p *Plan) needsCgroup(what Protection, asked bool, value string) error {
	if !asked {
		return nil
	}
	if slices.Contains(p.Spec.Degrade, what) {
		p.Dropped = append(p.Dropped, Dropped{what, "limiting it takes a cgroup, which this version does not set up"})
		p.Limits = append(p.Limits, Limit{string(what), value, ""})
		return nil
	}
	return &UnsupportedError{Feature: fmt.Sprintf("limit %s=%s", what, value),
		Remedy: fmt.Sprintf("this version sets up no cgroup; leave the limit out, or accept to run without it (degrade %s)", what)}
}

func duration(d time.Duration) string {
	if d == Unlimited {
		return "unlimited"
	}
	return d.String()
}

func limitText(b Bytes) string {
	if b == Unlimited {
		return "unlimited"
	}
	return b.String()
}
