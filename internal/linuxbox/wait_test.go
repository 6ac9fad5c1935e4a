//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// cat starts a program that lives until its input is closed, which kill does, and
// that nothing but the test reaps.
func cat(t *testing.T) (pid int, pidfd *os.File) {
	t.Helper()
	cmd := exec.Command("cat")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pidfd, err := openPidfd(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // likewise, and it closes the pipe
		_ = pidfd.Close()
	})
	return cmd.Process.Pid, pidfd
}

func TestWaitFor(t *testing.T) {
	testenv.Need(t, testenv.Program("cat"))
	pid, pidfd := cat(t)
	if !slices.Contains(children(), pid) {
		t.Errorf("%d is not among %v", pid, children())
	}
	if err := sendSignal(pidfd, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	status, _, err := waitFor(pidfd, pid, func() { t.Error("gave up") })
	if err != nil || !status.Signaled() || status.Signal() != unix.SIGUSR1 {
		t.Errorf("%v, %v", status, err)
	}
	if _, _, err := waitFor(pidfd, pid, func() {}); !errors.Is(err, unix.ECHILD) {
		t.Errorf("waiting twice: %v", err)
	}
	if err := sendSignal(pidfd, unix.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal after the end: %v", err)
	}
	if err := pidfd.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sendSignal(pidfd, unix.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal by a closed descriptor: %v", err)
	}
	if slices.Contains(children(), pid) {
		t.Errorf("%d is among %v", pid, children())
	}
}

func TestTracerOf(t *testing.T) {
	if got := tracerOf(os.Getpid()); got != 0 && os.Getenv("TEGMEN_TEST_REQUIRE") != "" {
		t.Errorf("traced by %d", got)
	}
	if got := tracerOf(1 << 30); got != 0 {
		t.Errorf("nobody is traced by %d", got)
	}
	if got := fieldsOf("/proc/self/status", "NoSuchKey:"); got != nil {
		t.Errorf("got %q", got)
	}
}

// A tag is on a process that shares its UTS namespace, and on no other.
func TestTag(t *testing.T) {
	testenv.Need(t, testenv.Program("cat"), testenv.Program("unshare"), testenv.UserNS)
	own := tagOf(os.Getpid())
	if own == nil {
		t.Fatal("no tag of this process")
	}
	defer own.uts.Close()
	pid, pidfd := cat(t)
	if on, err := own.on(pid); !on || err != nil {
		t.Errorf("not on a child: %v", err)
	}

	// One that has left the namespace is not signaled.
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--uts", "sh", "-c", "echo ready; cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	if on, _ := own.on(cmd.Process.Pid); on {
		t.Error("on a process that has left")
	}
	own.signal(cmd.Process.Pid, unix.SIGKILL)
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it was signaled: %v", err)
	}

	own.signal(pid, unix.SIGKILL)
	if status, _, err := waitFor(pidfd, pid, func() {}); err != nil || status.Signal() != unix.SIGKILL {
		t.Errorf("%v, %v", status, err)
	}
	if on, err := own.on(pid); on || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("on what has ended: %v, %v", on, err)
	}
	if gone := tagOf(pid); gone != nil {
		t.Error("a tag of what has ended")
	}
}

func TestIsOrphan(t *testing.T) {
	own := len(fieldsOf("/proc/self/status", "NSpid:"))
	if own < 1 || isOrphan(os.Getpid(), own) || isOrphan(os.Getpid(), 0) || isOrphan(1<<30, own) {
		t.Error("a living process, or none, is taken for a dead one of a sandbox")
	}
}
