package launch_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

func TestUnsupportedErrorMatches(t *testing.T) {
	cause := syscall.EPERM
	err := fmt.Errorf("start: %w", &launch.UnsupportedError{Feature: launch.FeatureClone3, Err: cause})
	for _, target := range []error{launch.ErrUnsupported, errors.ErrUnsupported, cause} {
		if !errors.Is(err, target) {
			t.Errorf("%v is not %v", err, target)
		}
	}
	if errors.Is(err, launch.ErrStopped) || errors.Is(err, syscall.ENOENT) {
		t.Errorf("%v matches an error that it is not", err)
	}
	std := errors.ErrUnsupported
	if !errors.Is(launch.ErrUnsupported, std) || errors.Is(std, launch.ErrUnsupported) {
		t.Error("ErrUnsupported must be a kind of errors.ErrUnsupported, not the reverse")
	}
}

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"step", &launch.StepError{What: launch.StartProcess, Call: "clone3", Errno: syscall.ENOSPC},
			"start process: clone3: no space left on device"},
		{"step with a path", &launch.StepError{What: "mount tmpfs", Path: "/tmp", Call: "mount", Errno: syscall.EPERM},
			`mount tmpfs "/tmp": mount: operation not permitted`},
		{"feature", &launch.UnsupportedError{Feature: "x"}, "x: not supported here"},
		{"all parts", &launch.UnsupportedError{Feature: "x", Since: "5.3", Remedy: "upgrade", Err: syscall.ENOSYS},
			"x: not supported here (function not implemented); first kernel: 5.3; upgrade"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.err.Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
