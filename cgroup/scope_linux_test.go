package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

// booted is a machine of systemd's, whose busctl is a script. It does nothing but
// that, and keep its arguments and its environment; moved tells when the process
// is in the scope.
func booted(t *testing.T, script, self string, moved func(calls int) bool) (v view, kept func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	kept = func(name string) string { return readText(filepath.Join(dir, name)) }
	text := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" >%[1]s/args\n/usr/bin/env >%[1]s/env\n%[2]s\n", dir, script)
	if err := os.WriteFile(dir+"/busctl", []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	calls := 0
	return view{self: self, read: func(name string) string {
		switch name {
		case "/proc/1/comm":
			return "systemd\n"
		case "/proc/self/cgroup":
			if calls++; moved(calls) {
				return "0::/somewhere/tegmen-42.scope\n"
			}
		}
		return self
	}}, kept
}

func atOnce(int) bool { return true }

func never(int) bool { return false }

func TestScopeAsks(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/elsewhere")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x")
	t.Setenv("SECRET", "of this process")
	bus, slice, env := "--user", "app.slice", []string{"LC_ALL=C", "XDG_RUNTIME_DIR=/run/elsewhere", "DBUS_SESSION_BUS_ADDRESS=unix:path=/x"}
	if os.Geteuid() == 0 {
		bus, slice, env = "--system", "user-1000.slice", env[:1]
	}
	v, kept := booted(t, "", "0::/user.slice/user-1000.slice/session-3.scope\n", func(calls int) bool { return calls > 3 })
	if err := v.scope(t.Context(), "42"); err != nil {
		t.Fatal(err)
	}
	want := bus + " call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StartTransientUnit ssa(sv)a(sa(sv))" +
		" tegmen-42.scope fail 4 PIDs au 1 42 Delegate b true CollectMode s inactive-or-failed Slice s " + slice + " 0"
	if got := strings.Join(strings.Fields(kept("args")), " "); got != want {
		t.Errorf("busctl was given\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(kept("env")) {
		name, _, _ := strings.Cut(line, "=")
		if line = strings.TrimSpace(line); name == "PWD" || name == "_" || name == "OLDPWD" || name == "SHLVL" {
			continue // the shell's
		}
		if len(env) == 0 || !strings.Contains(strings.Join(env, "\n")+"\n", line+"\n") {
			t.Errorf("busctl has %s", line)
		}
	}
	for _, line := range env {
		if !strings.Contains(kept("env"), line+"\n") {
			t.Errorf("busctl has no %s", line)
		}
	}
}

// Limits of a slice are not to be got rid of by asking for a scope.
func TestScopeStaysInItsSlice(t *testing.T) {
	user := fmt.Sprintf("/user.slice/user-7.slice/user@%d.service", os.Geteuid())
	for _, c := range []struct{ in, bus, want string }{
		{"/user.slice/user-0.slice/session-1.scope", "--system", "user-0.slice"},
		{"/system.slice/x.service", "--system", "system.slice"},
		{"/init.scope", "--system", "system.slice"},
		{"/", "--system", "system.slice"},
		{"/a.slice/a-b.slice/x.scope/mine.slice", "--system", "a-b.slice"},
		{"/user.slice/user-7.slice/session-1.scope", "--user", "app.slice"},
		{user + "/session.slice/x.service", "--user", "session.slice"},
		{user + "/app.slice/app-x.slice/y.scope", "--user", "app-x.slice"},
		{user + "/init.scope", "--user", "app.slice"},
	} {
		if got := sliceOf(c.in, c.bus); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.bus, c.in, got, c.want)
		}
	}
}

func TestScopeIsRefused(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, c := range []struct{ name, script, want string }{
		{"with a reason", "echo >&2 'Call failed: Unit tegmen-42.scope already exists.'; echo >&2 more; exit 1", "(Call failed: Unit tegmen-42.scope already exists.)"},
		{"without", "exit 3", "(exit status 3)"},
		{"at length", "echo >&2 " + long + "; exit 1", "(" + long[:1000] + ")"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, _ := booted(t, c.script, "0::/x\n", atOnce)
			err := v.scope(t.Context(), "42")
			if want := "a scope made by systemd: not supported here " + c.want; err == nil || err.Error() != want || !errors.Is(err, launch.ErrUnsupported) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

func TestScopeWithout(t *testing.T) {
	v, kept := booted(t, "", "0::/x\n", atOnce)
	other := v
	other.read = func(string) string { return "init\n" }
	if err := other.scope(t.Context(), "42"); !errors.Is(err, launch.ErrUnsupported) || !strings.Contains(err.Error(), "pid 1 is not systemd") || kept("args") != "" {
		t.Errorf("without systemd: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := v.scope(t.Context(), "42"); !errors.Is(err, launch.ErrUnsupported) || !strings.Contains(err.Error(), `"busctl": executable file not found in $PATH`) {
		t.Errorf("without busctl: %v", err)
	}
}

// A caller waits for neither a busctl that hangs nor a systemd that says yes and
// does nothing. The test ends by its own deadline if it does.
func TestScopeIsCanceled(t *testing.T) {
	for name, script := range map[string]string{
		"busctl hangs":                   "exec /bin/sleep 98102",
		"what it has started hangs":      "/bin/sleep 1 & wait",
		"systemd says yes and that's it": "",
	} {
		t.Run(name, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready")
			if err := unix.Mkfifo(ready, 0o600); err != nil {
				t.Fatal(err)
			}
			v, _ := booted(t, "echo >"+ready+"\n"+script, "0::/x\n", never)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- v.scope(ctx, "42") }()
			if _, err := os.ReadFile(ready); err != nil { // when the script has come so far
				t.Fatal(err)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want canceled", err)
			}
		})
	}
	v, _ := booted(t, "", "0::/x\n", never)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.scope(ctx, "42"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before: %v", err)
	}
}
