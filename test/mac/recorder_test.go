//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
)

// recorder stands in front of sandbox-exec: it writes down its arguments, each followed by a NUL, and executes it.
type recorder struct{ path, said string }

func record(t testing.TB) *recorder {
	t.Helper()
	h, err := macHost()
	if err != nil {
		t.Fatal(err)
	}
	d := dir(t)
	r := &recorder{filepath.Join(d, "sandbox-exec"), filepath.Join(d, "said")}
	script(t, r.path, `printf '%s\0' "$@" >'`+r.said+`'
exec '`+h.SandboxExec+`' "$@"`)
	return r
}

func (r *recorder) host(h *engine.Host) { h.SandboxExec = r.path }

// argv returns the arguments of the last command.
func (r *recorder) argv(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(r.said)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// unseen makes this test binary the stand-in. A shell would change the environment. On a Mac nothing stands in.
func unseen(t testing.TB) func(*engine.Host) {
	t.Helper()
	if !standIn {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir(t), "sandbox-exec")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return func(h *engine.Host) { h.SandboxExec = path }
}

// passOn executes what follows "--".
func passOn() {
	argv := os.Args[slices.Index(os.Args, "--")+1:]
	panic(syscall.Exec(argv[0], argv, os.Environ()))
}

// script writes a program of the host.
func script(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}
