//go:build linux

package engine_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// Each error can be matched by its type, its sentinel and its errno, and a command
// that cannot be executed says so itself, whoever finds out.
func TestExecError(t *testing.T) {
	testbox.EachLevel(t, func(t *testing.T, l testbox.Level) {
		box := l.Sandbox(t, engine.Spec{Keep: true})
		for _, c := range []struct {
			name, says string
			notFound   bool
			errno      syscall.Errno
		}{
			{"no-such-program", `exec "no-such-program": not found in the sandbox`, true, syscall.ENOENT},
			{"/no/such/program", `exec "/no/such/program": not found in the sandbox`, true, syscall.ENOENT},
			{"/etc/passwd", `exec "/etc/passwd": permission denied`, false, syscall.EACCES},
			{"/usr/bin", `exec "/usr/bin": is a directory`, false, syscall.EISDIR},
		} {
			for how, run := range map[string]func(*engine.Cmd) error{
				"Start": (*engine.Cmd).Start,
				"Run":   func(c *engine.Cmd) error { _, err := c.Run(); return err },
			} {
				err := run(box.Command(c.name))
				var exec *engine.ExecError
				if !errors.As(err, &exec) || exec.NotFound != c.notFound || exec.Name != c.name ||
					!errors.Is(err, c.errno) {
					t.Errorf("%s %s: %#v", how, c.name, err)
				} else if err.Error() != c.says {
					t.Errorf("%s %s: says %q, want %q", how, c.name, err, c.says)
				}
			}
		}
	})
}

// A system call of the set-up that fails is a StepError with its errno.
func TestStepError(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{})
	cmd := box.Command("true")
	cmd.Dir = "/no/such/directory"
	err := cmd.Start()
	var step *engine.StepError
	var wrapped *engine.Error
	if !errors.As(err, &step) || !errors.As(err, &wrapped) || !errors.Is(err, syscall.ENOENT) {
		t.Fatalf("got %#v", err)
	}
	if step.Call != "chdir" || step.Path != cmd.Dir || step.Errno != syscall.ENOENT || wrapped.Path != "true" {
		t.Errorf("%+v in %+v", step, wrapped)
	}
	if !errors.Is(step, syscall.ENOENT) || !strings.Contains(err.Error(), step.Error()) {
		t.Errorf("%q does not contain %q", err, step)
	}
}

// What a machine cannot do is an UnsupportedError, whether the plan or the engine
// finds out.
func TestUnsupportedError(t *testing.T) {
	h := testbox.Namespaces.Host(t)
	for name, attempt := range map[string]func() error{
		"the plan": func() error {
			_, err := engine.Compile(engine.Spec{FS: engine.FS{Hidden: []string{"/x"}}}, h)
			return err
		},
		"the engine": func() error {
			t.Setenv("PATH", "") // without busctl(1)
			h.Cgroup = cgroup.Place{}
			_, err := engine.Open(engine.Options{Host: &h, SystemdScope: true})
			return err
		},
	} {
		err := attempt()
		var u *engine.UnsupportedError
		if !errors.As(err, &u) || !errors.Is(err, engine.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %#v", name, err)
			continue
		}
		if u.Feature == "" || !strings.Contains(err.Error(), u.Error()) ||
			!errors.Is(u, errors.ErrUnsupported) || errors.Is(u, engine.ErrInvalid) {
			t.Errorf("%s: %#v", name, u)
		}
	}
	cause := errors.New("cause")
	if !errors.Is(&engine.UnsupportedError{Feature: "f", Err: cause}, cause) {
		t.Error("it hides its cause")
	}
}

func TestUseAfterClose(t *testing.T) {
	eng := testbox.Open(t)
	box, err := eng.Start(t.Context(), engine.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	session := box.Session("sh")
	for range 2 {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
	<-box.Done()
	if _, err := box.Command("true").Run(); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a command: %v", err)
	}
	if err := session.Close(); err != nil {
		t.Errorf("closing a session: %v", err)
	}
	_, err = box.Session("python").RunCode(t.Context(), engine.Code{Source: "1"}, nil)
	if !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a session: %v", err)
	}
	if _, err := box.Changes(t.Context()); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("changes without an overlay: %v", err)
	}
	for range 2 {
		if err := box.Discard(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := eng.Start(t.Context(), engine.Spec{}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a sandbox: %v", err)
	}
	_, err = eng.RunCode(t.Context(), engine.Spec{}, engine.Code{Language: "sh"}, nil)
	if !errors.Is(err, engine.ErrClosed) {
		t.Errorf("code: %v", err)
	}
}
