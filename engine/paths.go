package engine

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// hostPath refuses what is not a path, and "/": a sandbox that sees the whole host
// protects nothing.
func hostPath(field, p string) error {
	switch {
	case strings.ContainsRune(p, 0):
		return invalidField(field, quoted(p), "contains a NUL byte")
	case !filepath.IsAbs(p):
		return invalidField(field, quoted(p), "not an absolute path")
	case filepath.Clean(p) == "/":
		return invalidField(field, quoted(p), "the whole host cannot be given to a sandbox")
	}
	return nil
}

// target refuses mount points whose place the engine itself depends on.
func target(field, p string) error {
	clean := filepath.Clean(p)
	switch {
	case strings.ContainsRune(p, 0) || !filepath.IsAbs(p):
		return invalidField(field, quoted(p), "the target is not an absolute path")
	case clean == "/":
		return invalidField(field, quoted(p), "use Root to replace the root")
	case strings.HasPrefix(clean+"/", "/proc/"), slices.Contains([]string{"/dev", "/dev/pts", "/dev/null"}, clean):
		return invalidField(field, quoted(p), "is reserved for the sandbox")
	}
	return nil
}

// validEnv refuses what sets no variable. list is the field of the Spec that it is; "" if
// it is no part of one.
func validEnv(list string, env []string) error {
	const problem = "want NAME=value without NUL bytes"
	for i, kv := range env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			if list == "" {
				return invalid("environment %q: %s", kv, problem)
			}
			return invalidField(at(list, i), quoted(kv), problem)
		}
	}
	return nil
}

// viewPath is PATH in the host's view: this process's, as far as it can be seen, and the
// system's. home is HOME; "" is a private directory.
func viewPath(h Host, home, system string) string {
	var dirs []string
	for _, dir := range append(filepath.SplitList(h.Path), filepath.SplitList(system)...) {
		private := rootfs.Within("/tmp", dir) || rootfs.Within("/run", dir)
		closed := home == "" && h.OS == "linux" && rootfs.Within(cmp.Or(h.Home, "/tmp"), dir)
		if filepath.IsAbs(dir) && !private && !closed && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}
