//go:build linux

package engine_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// A command is waited for once, as in os/exec. After Run it panicked.
func TestWaitTwice(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	ran := box.Command("true")
	if _, err := ran.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := ran.Wait(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("Wait after Run: %v", err)
	}
	waited := box.Command("true")
	if err := waited.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := waited.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := waited.Wait(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("Wait twice: %v", err)
	}
}

// The pipes work with a terminal as well: there the engine copies, and their far ends
// were closed before it could.
func TestPipesOfATerminal(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	cmd := box.CommandContext(testbox.Within(t, testbox.Patience), "sh", "-c", "read x; echo got $x")
	cmd.TTY = &engine.WindowSize{Rows: 24, Cols: 80}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "line\n"); err != nil {
		t.Error(err)
	}
	b, _ := io.ReadAll(out) // what has been read until then is compared
	if res, err := cmd.Wait(); err != nil || res.Outcome != engine.OutcomeOK || !strings.Contains(string(b), "got line") {
		t.Errorf("%q, %v", b, err)
	}
}

// An unconnected socket is not handed over: a guest could connect it in the network
// namespace of the host, to an abstract socket there.
func TestUnconnectedSocketIsRefused(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	cmd := box.Command("true")
	cmd.ExtraFiles = []*os.File{f}
	if _, err := cmd.Run(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("as an extra file: %v", err)
	}
	cmd = box.Command("python3", "-c", "import socket; socket.socket(fileno=0).connect('\\0tegmen-test')")
	cmd.Stdin = f
	if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeExit {
		t.Errorf("as standard input: %+v, %v", res, err)
	}
}

// A kill that comes while a start fails finds no process, in one way or the other.
func TestKillWhileAStartFails(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	for range 30 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		// Killed before its execve, a command may count as started: what must not happen is a crash or a hang.
		if cmd := box.CommandContext(ctx, "/no/such"); cmd.Start() == nil {
			_, _ = cmd.Wait()
		}
		cancel()
	}
}
