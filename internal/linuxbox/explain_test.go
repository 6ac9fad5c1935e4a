//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
)

// Each errno of a start becomes an error that says what to do, and stays an errno.
func TestExplain(t *testing.T) {
	refusedHere := sysctl("user/max_user_namespaces") == "0" || sysctl("kernel/unprivileged_userns_clone") == "0" ||
		sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1"
	const landlock = "degrade namespaces"
	for _, c := range []struct {
		name      string
		step      launch.StepError
		is        error
		says, not string
	}{
		{"too many", launch.StepError{What: launch.StartProcess, Call: "clone3", Errno: unix.ENOSPC},
			launch.ErrUnsupported, "raise sysctl user.max_user_namespaces; or accept weaker confinement", ""},
		{"a masked proc", launch.StepError{What: setup.MountProc, Call: "mount", Errno: unix.EPERM},
			launch.ErrUnsupported, "systempaths=unconfined", landlock},
		{"a filter around", launch.StepError{What: launch.StartProcess, Call: "clone3", Errno: unix.EPERM},
			launch.ErrUnsupported, "allow clone and unshare", ""},
		{"an old kernel", launch.StepError{What: "attach", Call: "move_mount", Errno: unix.ENOSYS}, launch.ErrUnsupported,
			"first kernel: 5.2", landlock},
		{"no mount point", launch.StepError{What: setup.FindMountPoint, Path: "/img/x", Call: "openat2", Errno: unix.ENOENT},
			box.ErrInvalid, "mount point /img/x does not exist", ""},
		{"anything else", launch.StepError{What: "other", Call: "write", Errno: unix.EIO}, unix.EIO, "other: write", landlock},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.step.Errno == unix.EPERM && refusedHere {
				t.Skip("this machine refuses namespaces by a sysctl, which is said instead")
			}
			err := (&Machine{host: box.Host{Landlock: 6}}).explain(&c.step)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v that says %q", err, c.is, c.says)
			}
			if c.not != "" && strings.Contains(err.Error(), c.not) {
				t.Errorf("%v: it would not help", err)
			}
			if c.is != box.ErrInvalid && !errors.Is(err, c.step.Errno) {
				t.Errorf("%v has lost its errno", err)
			}
			if old := (&Machine{}).explain(&c.step); strings.Contains(old.Error(), landlock) {
				t.Errorf("without Landlock: %v", old)
			}
		})
	}
	if other := errors.New("other"); (&Machine{}).explain(other) != other {
		t.Error("an error that is no step's has changed")
	}
}

func TestCgroupError(t *testing.T) {
	for errno, says := range map[syscall.Errno]string{
		unix.EBUSY:  "start it in one of its own",
		unix.EAGAIN: "cgroup.max.descendants",
		unix.ENOSPC: "cgroup.max.descendants",
		unix.EIO:    "",
	} {
		err := cgroupError(errno)
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", errno, err)
		}
		if errors.Is(err, launch.ErrUnsupported) != (errno == unix.EBUSY) {
			t.Errorf("%v: unsupported: %v", errno, err)
		}
	}
}
