//go:build linux

package attack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// A guest that stops the interpreter while it starts does not hold up the host.
func TestSessionStoppedWhileItStarts(t *testing.T) {
	box := testbox.Start(t, testbox.OpenWithoutLandlock(t),
		engine.Spec{Keep: true, Seccomp: testbox.NoFilter, Limits: engine.Limits{Wall: 100 * time.Millisecond}})
	lines, w := io.Pipe()
	defer w.Close()
	guest := box.Command("python3", "-c", fmt.Sprintf(attacker, processVMReadv()), "stop")
	guest.Stdout, guest.Wall = w, engine.UnlimitedTime
	if err := guest.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(lines).ReadString('\n'); err != nil { // ready
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 30 {
			s := box.Session("python")
			_, _ = s.RunCode(t.Context(), engine.Code{Source: "1"}, nil) // it may start, or not
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("no end of it")
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	_, _ = guest.Wait() // ended with its sandbox
}

// Another command of the sandbox, with the same user, can signal a command that calls tools. It cannot take a
// descriptor out of it or use its channel.
func TestChannelIsNotTaken(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	tools, calls := testbox.Hang()
	ctx, cancel := context.WithCancel(testbox.Within(t, time.Minute))
	ended := make(chan error, 1)
	go func() {
		_, err := box.RunCode(ctx, engine.Code{Language: "python", Source: "hang()"}, tools)
		ended <- err
	}()
	<-calls
	res := testbox.Run(t, box, "python3", "-c", `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def lives(p):
    try: os.kill(p, 0)
    except OSError: return False
    return p != os.getpid()
victims = [p for p in range(2, 1000) if lives(p)] # /proc does not show them
for p in victims:
    try: print("opened", os.open(f"/proc/{p}/fd/3", os.O_RDWR))
    except OSError as e: pass
    pidfd = libc.syscall(434, int(p), 0)
    if libc.syscall(438, pidfd, 3, 0) >= 0: print("taken")
    if libc.ptrace(16, int(p), 0, 0) >= 0: print("traced")
print(len(victims) > 0)`)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := string(res.Stdout); got != "True\n" {
		t.Errorf("%q, stderr %s", got, res.Stderr)
	}
}
