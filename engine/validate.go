package engine

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/cgroup"
)

// Validate reports every contradiction in the Spec, joined; each is an
// ErrInvalid. It looks at nothing but the Spec: whether paths exist and
// whether this machine can do it is for Compile to find out.
func (s Spec) Validate() error {
	var errs []error
	for _, check := range []func(Spec) error{checkNames, checkUser, checkFS, checkEnv, checkLimits, checkRequire, checkSeccomp, checkSeatbelt, checkDegrade} {
		errs = append(errs, check(s))
	}
	return errors.Join(errs...)
}

func checkNames(s Spec) error {
	valid := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
	}
	bad := func(name string) bool {
		return len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return !valid(r) })
	}
	var errs []error
	if bad(s.Hostname) {
		errs = append(errs, invalid("hostname %q: up to 64 letters, digits, '-', '.' and '_'", s.Hostname))
	}
	if bad(s.Name) {
		errs = append(errs, invalid("name %q: up to 64 letters, digits, '-', '.' and '_'", s.Name))
	}
	return errors.Join(errs...)
}

func checkUser(s Spec) error {
	if u := s.User; u != nil {
		if u.UID < 0 || u.GID < 0 || int64(u.UID) >= 1<<32-1 || int64(u.GID) >= 1<<32-1 {
			return invalid("user %d:%d: ids are from 0 to 4294967294", u.UID, u.GID)
		}
	}
	return nil
}

func checkFS(s Spec) error {
	var errs []error
	if s.FS.Root != "" {
		errs = append(errs, hostPath("root", s.FS.Root))
	} else if s.FS.Overlay {
		errs = append(errs, invalid("overlay without a root directory: the host's own is only ever read"))
	}
	if s.FS.Workspace != "" {
		err := hostPath("workspace", s.FS.Workspace)
		if err == nil {
			err = target("workspace", s.FS.Workspace)
		}
		errs = append(errs, err)
	}
	errs = append(errs, checkOverlay(s), s.FS.checkAllowWrite())
	for _, m := range s.FS.Mounts {
		errs = append(errs, m.check())
	}
	return errors.Join(errs...)
}

func (m Mount) check() error {
	errs := []error{target("mount", m.Target)}
	switch m.Type {
	case MountBind:
		errs = append(errs, hostPath("mount", m.Source))
		if m.Size != 0 || m.Mode != 0 {
			errs = append(errs, invalid("mount %s: size and mode are for tmpfs", m.Target))
		}
	case MountTmpfs:
		if m.Source != "" || m.ReadOnly {
			errs = append(errs, invalid("mount %s: a tmpfs has no source and is not read-only", m.Target))
		}
		if m.Size < 0 || m.Mode > 0o1777 {
			errs = append(errs, invalid("mount %s: size %d, mode %o", m.Target, m.Size, m.Mode))
		}
	default:
		errs = append(errs, invalid("mount %s: type %q is neither bind nor tmpfs", m.Target, m.Type))
	}
	return errors.Join(errs...)
}

// hostPath refuses what is no absolute path, and "/": a sandbox that sees the
// whole host protects nothing.
func hostPath(what, p string) error {
	switch {
	case strings.ContainsRune(p, 0):
		return invalid("%s %q: contains a NUL byte", what, p)
	case !filepath.IsAbs(p):
		return invalid("%s %q: not an absolute path", what, p)
	case filepath.Clean(p) == "/":
		return invalid("%s %q: the whole host cannot be given to a sandbox", what, p)
	}
	return nil
}

// target refuses mount points whose place the engine itself depends on.
func target(what, p string) error {
	clean := filepath.Clean(p)
	switch {
	case strings.ContainsRune(p, 0) || !filepath.IsAbs(p):
		return invalid("%s %q: the target is not an absolute path", what, p)
	case clean == "/":
		return invalid("%s %q: the root is set with Root", what, p)
	case clean == "/proc" || strings.HasPrefix(clean, "/proc/") || clean == "/dev" || clean == "/dev/pts" || clean == "/dev/null":
		return invalid("%s %q: belongs to the sandbox", what, p)
	}
	return nil
}

func checkEnv(s Spec) error { return validEnv(s.Env) }

func validEnv(env []string) error {
	for _, kv := range env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return invalid("environment %q: want NAME=value without NUL bytes", kv)
		}
	}
	return nil
}

func checkLimits(s Spec) error {
	l := s.Limits
	var errs []error
	for _, c := range []struct {
		name string
		bad  bool
	}{
		{"wall", l.Wall < 0}, {"cpu time", l.CPUTime < 0}, {"cpus", !(l.CPUs >= 0)}, {"memory", l.Memory < 0},
		{"memory high", l.MemoryHigh < 0}, {"cpu weight", l.CPUWeight < 0}, {"discard", l.Discard < 0},
		{"address space", l.AddressSpace < 0}, {"pids", l.Pids < 0}, {"files", l.Files < 0}, {"file size", l.FileSize < 0},
		{"tmp", l.Tmp < 0}, {"tmp files", l.TmpFiles < 0}, {"workspace", l.Workspace < 0}, {"output", l.Output < 0},
		{"tool calls", l.ToolCalls < 0}, {"tool calls at once", l.ToolCallsAtOnce < 0}, {"tool time", l.ToolTime < 0}, {"frame", l.Frame < 0},
	} {
		if c.bad {
			errs = append(errs, invalid("limit %s: negative; 0 is the default, Unlimited is none", c.name))
		}
	}
	if l.Files != 0 && l.Files < 4 {
		errs = append(errs, invalid("limit files: %d is too few to start a program; at least 4", l.Files))
	}
	if l.CPUs > 0 && l.CPUs < cgroup.MinCPUs {
		errs = append(errs, invalid("limit cpus: %v; at least %v", l.CPUs, cgroup.MinCPUs))
	}
	if l.CPUWeight > 10000 && l.CPUWeight != Unlimited {
		errs = append(errs, invalid("limit cpu weight: %d; from 1 to 10000, 100 is what everyone has", l.CPUWeight))
	}
	if strings.Trim(l.CPUSet, "0123456789,-") != "" {
		errs = append(errs, invalid("limit cpu set: %q; want CPUs as 0-2,5", l.CPUSet))
	}
	for _, io := range l.IO {
		if io.ReadBPS < 0 || io.WriteBPS < 0 || io.ReadIOPS < 0 || io.WriteIOPS < 0 {
			errs = append(errs, invalid("limit io %s: negative; 0 is none", io.Device))
		}
		errs = append(errs, hostPath("limit io", io.Device))
	}
	if l.Frame > 0 && (l.Frame < 4*KiB || l.Frame > GiB) {
		errs = append(errs, invalid("limit frame: %s; from 4KiB to 1GiB", l.Frame))
	}
	return errors.Join(errs...)
}

func checkRequire(s Spec) error {
	enforcers := []string{byCgroup, byRlimit, byTmpfs, byWatchdog, byEngine}
	var errs []error
	for _, r := range s.Require {
		if !slices.Contains(enforcers, r.Enforcer) {
			errs = append(errs, invalid("require %s=%s: the enforcers are %s", r.Limit, r.Enforcer, strings.Join(enforcers, ", ")))
		}
		if !slices.Contains(limitNames, r.Limit) {
			errs = append(errs, invalid("require %s=%s: the limits are %s", r.Limit, r.Enforcer, strings.Join(limitNames, ", ")))
		}
	}
	return errors.Join(errs...)
}

func checkDegrade(s Spec) error {
	for _, p := range s.Degrade {
		if !slices.Contains(Protections(), p) {
			return invalid("degrade %q: not one of %s", p, strings.Join(names(Protections()), ", "))
		}
	}
	return nil
}

func names[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
