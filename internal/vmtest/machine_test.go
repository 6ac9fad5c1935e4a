//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestMachine checks, in a machine, that each user of tests can make cgroups whose limits hold.
func TestMachine(t *testing.T) {
	testenv.Need(t, testenv.Cgroup, testenv.Program("sh"))
	own := filepath.Join(cgroups, strings.TrimPrefix(read(t, "/proc/self/cgroup"), "0::"))
	leaf, child := filepath.Join(own, "leaf"), filepath.Join(own, "child")
	for _, dir := range []string{leaf, child} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(dir) }) // not while this process is in it
	}
	// A cgroup whose children have controllers has no processes itself.
	write(t, filepath.Join(leaf, "cgroup.procs"), "0")
	t.Cleanup(func() {
		write(t, filepath.Join(own, "cgroup.subtree_control"), "-memory -pids")
		write(t, filepath.Join(own, "cgroup.procs"), "0")
	})
	write(t, filepath.Join(own, "cgroup.subtree_control"), "+memory +pids")
	write(t, filepath.Join(child, "memory.max"), "8M")
	write(t, filepath.Join(child, "pids.max"), "8")
	fd, err := os.Open(child)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	// The kernel charges the pages of a program to whoever reads them first. A cgroup with so little memory would read
	// them again and again, over 9p, for minutes.
	if out, err := exec.Command("sh", "-c",
		"head -c 100000 /dev/zero | tr '\\0' x >/dev/null; sleep 0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	try := func(script string) error {
		cmd := exec.Command("sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
		return cmd.Run()
	}
	if err := try("x=$(head -c 100000 /dev/zero | tr '\\0' x)"); err != nil {
		t.Errorf("within the limits: %v", err)
	}
	var exit *exec.ExitError
	if err := try("x=$(head -c 12000000 /dev/zero | tr '\\0' x)"); !errors.As(err, &exit) ||
		exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("beyond memory.max: %v, want a kill", err)
	}
	if events := read(t, filepath.Join(child, "memory.events")); !strings.Contains(events, "\noom_kill 1\n") {
		t.Errorf("memory.events: %s", events)
	}
	if err := try("sleep 60 & sleep 60 & sleep 60 & sleep 60 & sleep 60 & sleep 60 & sleep 60 & sleep 60 & wait"); err == nil {
		t.Error("nine processes where eight may be")
	}
	write(t, filepath.Join(child, "cgroup.kill"), "1")
}
