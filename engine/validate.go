package engine

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/protect"
)

// Validate reports every contradiction in the Spec, joined; each is an
// ErrInvalid. It looks at nothing but the Spec and the current directory, for
// relative paths: Compile finds out whether paths exist and whether this machine
// can do it.
func (s Spec) Validate() error {
	s = s.normal()
	var errs []error
	for _, check := range []func(Spec) []error{checkNames, checkUser, checkFS, checkEnv, checkLimits, checkRequire,
		checkSeccomp, checkSeatbelt, checkDegrade} {
		errs = append(errs, check(s)...)
	}
	return errors.Join(errs...)
}

func checkNames(s Spec) (errs []error) {
	valid := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
	}
	bad := func(name string) bool {
		return len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return !valid(r) })
	}
	if bad(s.Hostname) {
		errs = append(errs, invalid("hostname %q: up to 64 letters, digits, '-', '.' and '_'", s.Hostname))
	}
	if bad(s.Name) {
		errs = append(errs, invalid("name %q: up to 64 letters, digits, '-', '.' and '_'", s.Name))
	}
	return errs
}

func checkUser(s Spec) []error {
	if u := s.User; u != nil {
		if u.UID < 0 || u.GID < 0 || int64(u.UID) >= 1<<32-1 || int64(u.GID) >= 1<<32-1 {
			return []error{invalid("user %d:%d: ids are from 0 to 4294967294", u.UID, u.GID)}
		}
	}
	return nil
}

func checkFS(s Spec) (errs []error) {
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
	errs = append(errs, checkOverlay(s)...)
	if len(s.FS.AllowWrite) > 0 && s.FS.Workspace == "" {
		errs = append(errs, invalid("allow write without a workspace: nothing else is protected"))
	} else {
		for _, err := range protect.CheckAllowWrite(s.FS.Workspace, s.FS.AllowWrite) {
			errs = append(errs, invalidOnce(err))
		}
	}
	for _, m := range s.FS.Mounts {
		errs = append(errs, m.check())
	}
	return errs
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

// hostPath refuses what is not a path, and "/": a sandbox that sees the whole host
// protects nothing.
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

func checkEnv(s Spec) []error { return []error{validEnv(s.Env)} }

func validEnv(env []string) error {
	for _, kv := range env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return invalid("environment %q: want NAME=value without NUL bytes", kv)
		}
	}
	return nil
}

func checkDegrade(s Spec) (errs []error) {
	for _, p := range s.Degrade {
		if !slices.Contains(Protections(), p) {
			errs = append(errs, invalid("degrade %q: not one of %s", p, list(Protections())))
		}
	}
	return errs
}
