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

// scopePatience bounds Scope. It takes some 20 ms; a systemd that is busy
// starting a desktop answers late.
const scopePatience = 10 * time.Second

// Scope has systemd make a scope for this process, alone and with every
// controller that can be had, and returns when it is there: Find then finds it. As
// by systemd-run --scope -p Delegate=yes, for a process that runs already. Root asks
// the machine's systemd, others that of their user. The limits of the cgroup that it
// was in hold no longer; those of slices above do. systemd removes the scope after
// the last process in it.
//
// The error is an UnsupportedError where there is no systemd or no busctl(1), and
// with what was said where that is refused; and the context's when that ends first.
func Scope(ctx context.Context) error {
	// As /proc has it, where systemd is found to be pid 1: in a pid namespace below,
	// getpid(2) is the number of another process there, and that would be moved.
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
		return noScope(err, "it is part of systemd, and has to be in PATH")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, scopePatience, fmt.Errorf("systemd has not done it within %s", scopePatience))
	defer cancel()
	unit := groupPrefix + pid + ".scope" // not a name that sweep removes
	bus, env := "--system", []string{"LC_ALL=C"}
	if uid := os.Geteuid(); uid != 0 {
		// Where su(1) or cron(8) do not say so, its place is file-hierarchy(7)'s. What
		// comes later counts.
		bus, env = "--user", append(env, fmt.Sprintf("XDG_RUNTIME_DIR=/run/user/%d", uid))
		for _, name := range []string{"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
			if value := os.Getenv(name); value != "" {
				env = append(env, name+"="+value)
			}
		}
	}
	// org.freedesktop.systemd1(5): name, mode, properties, and further units. Delegate
	// is all controllers there are (DelegateControllers would be a list).
	args := []string{bus, "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
		"StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", "4",
		"PIDs", "au", "1", pid, "Delegate", "b", "true", "CollectMode", "s", "inactive-or-failed", "Slice", "s", sliceOf(pathOf(v.self), bus), "0"}
	var said firstBytes
	cmd := exec.CommandContext(ctx, busctl, args...)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = env, &said, 100*time.Millisecond
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		if line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n"); line != "" {
			err = errors.New(line)
		}
		return noScope(err, "")
	}
	// The answer is that it will be done. /proc tells nobody of its changes, and in
	// what directory the scope will be systemd alone knows.
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

// sliceOf is the innermost slice above a cgroup that the systemd of that bus has
// made: its limits go on. Where there is none, it is what systemd takes itself.
func sliceOf(in, bus string) string {
	slice := "system.slice"
	if bus == "--user" {
		slice = "app.slice"
		_, in, _ = strings.Cut(in, fmt.Sprintf("/user@%d.service", os.Geteuid()))
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(in, "/"), "/") {
		if !strings.HasSuffix(name, ".slice") {
			break // what is below may be anything
		}
		slice = name
	}
	return slice
}

// firstBytes keeps the beginning of what is written.
type firstBytes []byte

func (b *firstBytes) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), 1000-len(*b))]...)
	return len(p), nil
}
