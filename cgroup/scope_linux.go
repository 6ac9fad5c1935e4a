//go:build linux

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

// scopeTimeout bounds Scope. It usually takes 20 ms, but a systemd that is busy
// starting a desktop answers late.
const scopeTimeout = 10 * time.Second

// Scope asks systemd to move this process, with all its threads, into a new scope of
// its own with every available controller, and returns when Find can find it. It does
// for a running process what systemd-run --scope -p Delegate=yes does for a new one.
// Root asks the system's systemd, other users ask their own. The limits of the
// previous cgroup no longer apply; those of the slices above it do. systemd removes the
// scope when its last process ends.
//
// If systemd or busctl(1) is missing, or systemd refuses, the error is the engine's
// ErrUnsupported with the reason. If the context ends first, it is the context's.
func Scope(ctx context.Context) error {
	// The pid as seen in /proc, where systemd is pid 1. In a pid namespace below,
	// getpid(2) returns what is another process's pid there, and systemd would move that.
	pid, err := os.Readlink("/proc/self")
	if err != nil {
		return err
	}
	return theView().scope(ctx, pid)
}

func (v view) scope(ctx context.Context, pid string) error {
	if strings.TrimSpace(v.read("/proc/1/comm")) != "systemd" {
		return noScope(errors.New("pid 1 is not systemd"), "")
	}
	busctl, err := exec.LookPath("busctl")
	if err != nil {
		return noScope(err, "it is part of systemd and must be in PATH")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, scopeTimeout, fmt.Errorf("no scope within %s", scopeTimeout))
	defer cancel()
	unit := groupPrefix + pid + ".scope" // removeAbandoned does not match it
	bus, env := "--system", []string{"LC_ALL=C"}
	if uid := os.Geteuid(); uid != 0 {
		// su(1) and cron(8) leave XDG_RUNTIME_DIR unset: default to file-hierarchy(7). The
		// last of several values counts.
		bus, env = "--user", append(env, fmt.Sprintf("XDG_RUNTIME_DIR=/run/user/%d", uid))
		for _, name := range []string{"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
			if value := os.Getenv(name); value != "" {
				env = append(env, name+"="+value)
			}
		}
	}
	// org.freedesktop.systemd1(5): name, mode, properties, auxiliary units. Delegate
	// covers all available controllers; DelegateControllers would be a list.
	args := []string{bus, "call", "org.freedesktop.systemd1",
		"/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
		"StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", "4",
		"PIDs", "au", "1", pid, "Delegate", "b", "true", "CollectMode", "s", "inactive-or-failed",
		"Slice", "s", sliceOf(pathOf(v.self), bus), "0"}
	var stderr firstBytes
	cmd := exec.CommandContext(ctx, busctl, args...)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = env, &stderr, 100*time.Millisecond
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		if line, _, _ := strings.Cut(strings.TrimSpace(string(stderr)), "\n"); line != "" {
			err = errors.New(line)
		}
		return noScope(err, "")
	}
	// systemd has only queued the job. /proc does not report changes and only systemd
	// knows the scope's directory, so poll.
	for pause := time.Millisecond; path.Base(pathOf(v.read("/proc/self/cgroup"))) != unit; pause *= 2 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("ask systemd for %s: %w", unit, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
	return nil
}

func noScope(err error, remedy string) error {
	return &launch.UnsupportedError{Feature: "a scope made by systemd", Err: err, Remedy: remedy}
}

// sliceOf returns the innermost slice above a cgroup that the systemd of the bus
// manages, so that its limits still apply. Without one, it is systemd's default.
func sliceOf(in, bus string) string {
	slice := "system.slice"
	if bus == "--user" {
		slice = "app.slice"
		_, in, _ = strings.Cut(in, fmt.Sprintf("/user@%d.service", os.Geteuid()))
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(in, "/"), "/") {
		if !strings.HasSuffix(name, ".slice") {
			break // below this, names may mean anything
		}
		slice = name
	}
	return slice
}

// firstBytes is a Writer that keeps the first 1000 bytes.
type firstBytes []byte

// Write implements io.Writer.
func (b *firstBytes) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), 1000-len(*b))]...)
	return len(p), nil
}
