package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// startError says what to do if the sandbox lacks the program, or the directory of
// --workdir, that the host has.
func (o *options) startError(err error) error {
	var step *engine.StepError
	if errors.As(err, &step) && step.Call == "chdir" && o.workdir != "" && step.Path == o.workdir {
		err = fmt.Errorf("--workdir %s: %w", o.workdir, step.Errno)
		if st, serr := os.Stat(o.workdir); serr == nil && st.IsDir() && !o.sees(o.workdir) {
			err = fmt.Errorf("%w; the host has it, and the sandbox does not see it: --workspace %s", err, o.workdir)
		}
		return err
	}
	var missing *engine.ExecError
	if errors.As(err, &missing) && missing.NotFound && missing.Name == o.program && o.spec.FS.Root == "" {
		if hint := o.whereIs(missing.Name); hint != "" {
			return fmt.Errorf("%w; %s", err, hint)
		}
	}
	return err
}

// images are names of images that people type out of habit; a program may have others.
var images = []string{"alpine", "archlinux", "busybox", "debian", "fedora", "ubuntu"}

// whereIs says where the host has a program that the sandbox does not see; "" if it has
// none.
func (o *options) whereIs(name string) string {
	if strings.Contains(name, "/") && o.isHere(name) {
		return o.notSeen(name)
	}
	image, _, tagged := strings.Cut(name, ":")
	if tagged && image != "" && !strings.HasPrefix(name, "/") || slices.Contains(images, name) {
		return "there are no images: programs are those of the host, or of --rootfs DIR"
	}
	if strings.Contains(name, "/") {
		return ""
	}
	if newer := name + "3"; (name == "python" || name == "pip") && o.has(newer) {
		return "the sandbox has " + newer
	}
	at, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	dir := filepath.Dir(at)
	if rootfs.Within("/usr", at) { // which the sandbox sees
		return fmt.Sprintf("it is %s: -e PATH=%s:/usr/bin:/bin", at, dir)
	}
	return fmt.Sprintf("on the host it is %s: -v %s:%s:ro -e PATH=%s:/usr/bin:/bin", at, dir, dir, dir)
}

// has reports whether the sandbox has a program of the host's system.
func (o *options) has(name string) bool {
	_, err := os.Stat("/usr/bin/" + name)
	return err == nil && !slices.ContainsFunc(o.spec.Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
}

// isHere reports whether a path is one of the host that the sandbox does not see: relative
// and thus in the current directory, or in it although absolute.
func (o *options) isHere(name string) bool {
	here, err := os.Getwd()
	if err != nil {
		return false
	}
	at := name
	if !filepath.IsAbs(at) {
		at = filepath.Join(here, name)
	} else if !rootfs.Within(here, at) {
		return false
	}
	_, err = os.Lstat(at)
	return err == nil && here != "/" && !o.sees(at)
}

// sees reports whether a path of the host is in a directory that the sandbox shows at the
// same place.
func (o *options) sees(at string) bool {
	fs := o.spec.FS
	if fs.Workspace != "" && rootfs.Within(fs.Workspace, at) {
		return true
	}
	return slices.ContainsFunc(fs.Mounts, func(m engine.Mount) bool { return rootfs.Within(filepath.Clean(m.Target), at) })
}

// notSeen is the hint about a file of the current directory.
func (o *options) notSeen(name string) string {
	what := "it"
	if name != o.program {
		what = name
	}
	if o.spec.FS.Workspace != "" {
		return what + " is in the current directory, and the sandbox sees " + o.spec.FS.Workspace
	}
	return what + " is in the current directory, which the sandbox does not see: --workspace ."
}

// unseenArgument is a hint for a program that failed and had the name of a file in the
// current directory as an argument: it starts in another one, where that is not. "" is
// none: the program may have failed for any reason, so the hint takes a sandbox that sees
// nothing of the host's directories.
func (o *options) unseenArgument(res *engine.Result) string {
	fs := o.spec.FS
	if res.Outcome != engine.OutcomeExit || fs.Root != "" || fs.Workspace != "" || len(fs.Mounts) > 0 {
		return ""
	}
	for _, arg := range o.args {
		if arg != "" && arg != "." && arg[0] != '-' && o.isHere(arg) {
			return o.notSeen(arg)
		}
	}
	return ""
}
