//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/ns"
)

// explain turns an errno of a start that failed into what a user can act on.
func (m *Machine) explain(err error) error {
	err = m.reason(err)
	var u *launch.UnsupportedError
	if errors.As(err, &u) && (u.Feature == userNamespaces || u.Feature == launch.FeatureClone3) &&
		m.host.Landlock >= ns.FirstScope {
		with := *u
		with.Remedy += "; or accept weaker confinement without namespaces (degrade namespaces)"
		return &with
	}
	return err
}

const userNamespaces = "user namespaces"

// reason runs only when a start has failed, so it may look around.
func (m *Machine) reason(err error) error {
	var step *launch.StepError
	if !errors.As(err, &step) {
		return err
	}
	if step.What == setup.FindMountPoint && errors.Is(err, unix.ENOENT) {
		return box.Invalid("mount point %s does not exist, and tegmen creates nothing on the host: "+
			"create it, mount elsewhere, or use a root directory with an overlay", step.Path)
	}
	refused := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	switch {
	case step.What == launch.StartProcess && errors.Is(err, unix.ENOSPC):
		return &launch.UnsupportedError{Feature: userNamespaces, Err: err,
			Remedy: "the limit is reached: raise sysctl user.max_user_namespaces"}
	case sysctl("user/max_user_namespaces") == "0" && refused:
		return &launch.UnsupportedError{Feature: userNamespaces, Err: err,
			Remedy: "sysctl user.max_user_namespaces is 0: raise it"}
	case sysctl("kernel/unprivileged_userns_clone") == "0" && refused:
		return &launch.UnsupportedError{Feature: userNamespaces, Err: err,
			Remedy: "set sysctl kernel.unprivileged_userns_clone=1"}
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" && refused && !m.host.Become:
		return &launch.UnsupportedError{Feature: userNamespaces, Err: err,
			Remedy: "AppArmor restricts them: give this program a profile with 'userns,', " +
				"or set sysctl kernel.apparmor_restrict_unprivileged_userns=0"}
	case step.What == launch.StartProcess && refused:
		return &launch.UnsupportedError{Feature: userNamespaces, Err: err,
			Remedy: "a seccomp filter or the policy of an outer container refuses them: " +
				"allow clone and unshare with CLONE_NEWUSER there"}
	case step.What == setup.MountProc && refused:
		return &launch.UnsupportedError{Feature: "a fresh /proc", Err: err,
			Remedy: "an outer container masks parts of its /proc: " +
				"run it with --security-opt systempaths=unconfined, or unmask /proc"}
	case errors.Is(err, unix.ENOSYS):
		return &launch.UnsupportedError{Feature: step.Call, Since: since[step.Call], Err: err}
	}
	return err
}

// since lists the first kernels of the calls that a sandbox cannot do without.
var since = map[string]string{
	"mount_setattr": "5.12", "open_tree": "5.2", "move_mount": "5.2", "openat2": "5.6", "close_range": "5.9",
}

func sysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
