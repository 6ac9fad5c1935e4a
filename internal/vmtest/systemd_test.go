//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// TestSystemdScope runs TestInSession and TestInSlice on a machine with systemd, as a user who has logged in.
func TestSystemdScope(t *testing.T) {
	// Only in a machine of vmtest: tests must not touch the host's systemd.
	testenv.Need(t, testenv.Root, testenv.File(source), testenv.Cgroup, testenv.Program("busctl"),
		testenv.Program("dbus-daemon"),
		testenv.File("/lib/systemd/systemd"), testenv.File(userBus))
	own := filepath.Join(cgroups, strings.TrimPrefix(read(t, "/proc/self/cgroup"), "0::"))
	leaf, machine := makeCgroup(filepath.Join(own, "leaf")), filepath.Join(own, "machine")
	join(leaf)
	t.Cleanup(func() {
		removeCgroup(machine)
		for c := range strings.FieldsSeq(read(t, own+"/cgroup.subtree_control")) {
			write(t, own+"/cgroup.subtree_control", "-"+c)
		}
		join(own)
		removeCgroup(leaf)
	})
	enable(own)
	fd, err := os.Open(makeCgroup(machine))
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "testdata/systemd/boot.sh", out, program)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC, Unshareflags: unix.CLONE_NEWCGROUP,
		UseCgroupFD: true, CgroupFD: int(fd.Fd()),
	}
	said, err := cmd.CombinedOutput()
	log, _ := os.ReadFile(out + "/log") // there is none where nothing has started
	t.Logf("%s%s", said, log)
	if err != nil || strings.Count(string(log), "--- PASS: ") != 2 {
		t.Errorf("systemd: %v", err)
	}
}

// TestInSession runs in a cgroup that it may not change, with other processes.
func TestInSession(t *testing.T) {
	if os.Getenv("TEGMEN_SESSION") == "" {
		t.Skip("TestSystemdScope runs it")
	}
	spec := engine.Spec{Limits: engine.Limits{Memory: 32 * engine.MiB, CPUs: 1},
		Require: []engine.Requirement{{Limit: "memory", Enforcer: "cgroup"}}}
	before := read(t, "/proc/self/cgroup")
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Compile(spec); !errors.Is(err, engine.ErrUnsupported) ||
		!strings.Contains(err.Error(), "systemd-run --user --scope -p Delegate=yes") {
		t.Errorf("without a scope: %v", err)
	}
	if now := read(t, "/proc/self/cgroup"); now != before || !strings.HasSuffix(now, "/session-1.scope") {
		t.Errorf("nobody has asked to be moved: %s, was %s", now, before)
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
	began := time.Now()
	eng, err = engine.Open(engine.Options{SystemdScope: true})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	t.Logf("moved in %v", time.Since(began))
	if now := read(t, "/proc/self/cgroup"); !strings.HasSuffix(now,
		fmt.Sprintf("/user@1000.service/app.slice/tegmen-%d.scope", os.Getpid())) {
		t.Errorf("moved to %s", now)
	}
	for script, want := range map[string]engine.Outcome{
		"x=$(head -c 100000 /dev/zero | tr '\\0' x)":   engine.OutcomeOK,
		"x=$(head -c 40000000 /dev/zero | tr '\\0' x)": engine.OutcomeOOM,
	} {
		box, err := eng.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		res, err := box.CommandContext(t.Context(), "sh", "-c", script).Run()
		if err != nil || res.Outcome != want || len(res.Start.Dropped) > 0 {
			t.Errorf("%s: %v %+v, want %s", script, err, res, want)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
	// A process that is in its scope already does not ask for another.
	again, err := engine.Open(engine.Options{SystemdScope: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestInSlice runs in a scope that it may not change, in a slice that it may. systemd turns controllers off there when
// its own units do not need them.
func TestInSlice(t *testing.T) {
	if os.Getenv("TEGMEN_SESSION") == "" {
		t.Skip("TestSystemdScope runs it")
	}
	host, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(host.Cgroup.Dir, "/app.slice") {
		t.Fatalf("what is found is %+v", host.Cgroup)
	}
	eng, err := engine.Open(engine.Options{Host: &host, SystemdScope: true})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	if !strings.HasSuffix(host.Cgroup.Dir, "/app.slice") {
		t.Error("the caller's Host has been written to")
	}
	box, err := eng.Start(t.Context(), engine.Spec{Limits: engine.Limits{CPUs: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if out, err := exec.Command("systemd-run", "--user", "--scope", "--slice=app", "-p", "CPUWeight=50",
		"true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// When the scope is gone, systemd undoes what it did for it.
	if out, err := exec.Command("systemctl", "--user", "stop", "run-*.scope").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	limits, err := filepath.Glob(host.Cgroup.Dir + "/tegmen-*.scope/tegmen-*/cpu.max")
	if err != nil || len(limits) == 0 {
		t.Fatalf("no limit to CPUs: %v", err)
	}
	found := 0
	for _, name := range limits {
		if read(t, name) == "100000 100000" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d limits to CPUs, want 1", found)
	}
}
