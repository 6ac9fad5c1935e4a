package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/protect"
)

// Validate reports every contradiction in the Spec, or the first 20, joined; each is
// an ErrInvalid. It looks at nothing but the Spec and the current directory, for
// relative paths: Compile finds out whether paths exist and whether this machine
// can do it.
func (s Spec) Validate() error {
	s = s.normal()
	var errs []error
	for _, check := range []func(Spec) []error{checkNames, checkUser, checkFS, checkEnv, checkLimits, checkRequire,
		checkSeccomp, checkView, checkDegrade} {
		errs = append(errs, check(s)...)
	}
	return joinSome(errs)
}

func checkNames(s Spec) (errs []error) {
	valid := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
	}
	bad := func(name string) bool {
		return len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return !valid(r) })
	}
	if bad(s.Hostname) {
		errs = append(errs, invalidField("hostname", quoted(s.Hostname), "up to 64 letters, digits, '-', '.' and '_'"))
	}
	if bad(s.Name) {
		errs = append(errs, invalidField("name", quoted(s.Name), "up to 64 letters, digits, '-', '.' and '_'"))
	}
	return errs
}

func checkUser(s Spec) []error {
	if u := s.User; u != nil {
		if u.UID < 0 || u.GID < 0 || int64(u.UID) >= 1<<32-1 || int64(u.GID) >= 1<<32-1 {
			return []error{invalidField("user", fmt.Sprintf("%d:%d", u.UID, u.GID), "ids are from 0 to 4294967294")}
		}
	}
	return nil
}

func checkFS(s Spec) (errs []error) {
	if s.FS.Root != "" {
		errs = append(errs, hostPath("fs.root", s.FS.Root))
	} else if s.FS.Overlay {
		errs = append(errs, invalidField("fs.overlay", "", "without a root directory: the host's own is only ever read"))
	}
	if s.FS.Workspace != "" {
		err := hostPath("fs.workspace", s.FS.Workspace)
		if err == nil {
			err = target("fs.workspace", s.FS.Workspace)
		}
		errs = append(errs, err)
	}
	errs = append(errs, checkOverlay(s)...)
	if len(s.FS.AllowWrite) > 0 && s.FS.Workspace == "" {
		errs = append(errs, invalidField("fs.allow_write", "", "without a workspace nothing is protected"))
	} else {
		for _, err := range protect.CheckAllowWrite(s.FS.Workspace, s.FS.AllowWrite) {
			errs = append(errs, protectError(err))
		}
	}
	for i, m := range s.FS.Mounts {
		errs = append(errs, m.check(at("fs.mounts", i)))
	}
	return errs
}

// check refuses a mount; field is its path in the Spec.
func (m Mount) check(field string) error {
	errs := []error{target(field+".target", m.Target)}
	refuse := func(part, format string, args ...any) {
		errs = append(errs, invalidField(field+part, m.Target, format, args...))
	}
	switch m.Type {
	case MountBind:
		errs = append(errs, hostPath(field+".source", m.Source))
		if m.Size != 0 || m.Mode != 0 || m.NoExec {
			refuse("", "size, mode and noexec are for tmpfs")
		}
	case MountTmpfs:
		if m.Source != "" || m.ReadOnly {
			refuse("", "a tmpfs has no source and is not read-only")
		}
		if m.Size < 0 {
			refuse(".size_bytes", "a negative size")
		}
		if m.Mode > 0o1777 {
			refuse(".mode", "mode %o: permission bits are up to 1777", m.Mode)
		}
	default:
		refuse(".type", "type %q is neither bind nor tmpfs", m.Type)
	}
	return errors.Join(errs...)
}

func checkEnv(s Spec) []error { return []error{validEnv("env", s.Env)} }

func checkDegrade(s Spec) (errs []error) {
	for i, p := range s.Degrade {
		if !slices.Contains(Protections(), p) {
			errs = append(errs, invalidField(at("degrade", i), quoted(p), "not one of %s", list(Protections())))
		}
	}
	return errs
}

func checkLimits(s Spec) (errs []error) {
	l := s.Limits
	refuse := func(name LimitName, format string, args ...any) {
		errs = append(errs, invalidField(limitPath(name), "", format, args...))
	}
	for _, f := range limitFields {
		if f.at(&l).get < 0 {
			refuse(f.name, "negative; 0 is the default, and unlimited is a value of its own")
		}
	}
	switch {
	case !(l.CPUs >= 0):
		refuse(LimitCPUs, "%v; want a number of CPUs, or 0 for all", l.CPUs)
	case l.CPUs > 0 && l.CPUs < cgroup.MinCPUs:
		refuse(LimitCPUs, "%v; at least %v", l.CPUs, cgroup.MinCPUs)
	}
	if l.CPUWeight > 10000 && l.CPUWeight != UnlimitedCount {
		refuse(LimitCPUWeight, "%d; must be from 1 to 10000; the default is 100", l.CPUWeight)
	}
	if strings.Trim(l.CPUSet, "0123456789,-") != "" {
		refuse(LimitCPUSet, "%q; must list CPUs, such as 0-2,5", l.CPUSet)
	}
	if l.Files > 0 && l.Files < 4 {
		refuse(LimitFiles, "%d is too few to start a program: use at least 4", l.Files)
	}
	if l.Frame > 0 && (l.Frame < 4*KiB || l.Frame > GiB) {
		refuse(LimitFrame, "%s; from 4KiB to 1GiB", l.Frame)
	}
	for _, m := range []struct {
		name LimitName
		of   Bytes
	}{{LimitMemory, l.Memory}, {LimitMemoryHigh, l.MemoryHigh}} {
		if m.of > 0 && m.of < MiB { // likely meant in another unit
			refuse(m.name, "%s is too little for any program: use at least 1MiB", m.of)
		}
	}
	for i, io := range l.IO {
		if min(io.ReadBPS, io.WriteBPS) < 0 || min(io.ReadIOPS, io.WriteIOPS) < 0 {
			errs = append(errs, invalidField(at("limits.io", i), "", "%s: negative; 0 is no limit", io.Device))
		}
		errs = append(errs, hostPath(at("limits.io", i)+".device", io.Device))
	}
	return errs
}
