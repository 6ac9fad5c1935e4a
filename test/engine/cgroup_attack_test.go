//go:build linux

package engine_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// hold starts a guest that stops all processes of its sandbox, and commands beside it, which hang. release cancels
// them and waits until they have returned.
func hold(t *testing.T, hostile *engine.Sandbox) (release func()) {
	t.Helper()
	if err := hostile.Command("sh", "-c", "while :; do kill -STOP -1; done").Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	const starts = 6
	held := make(chan struct{}, starts)
	for range starts {
		go func() {
			_, _ = hostile.CommandContext(ctx, "true").Run() // however it ends
			held <- struct{}{}
		}()
	}
	return func() {
		cancel()
		for i := range starts {
			select {
			case <-held:
			case <-time.After(20 * time.Second):
				t.Fatal("canceled, but only " + strconv.Itoa(i) + " have come back")
			}
		}
	}
}

// soon fails the test unless f returns within the deadline.
func soon(t *testing.T, what string, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("%s: held up", what)
	}
}

// startOne starts a sandbox and a command.
func startOne(eng *engine.Engine) func() error {
	return func() error {
		box, err := eng.Start(context.Background(), engine.Spec{})
		if err != nil {
			return err
		}
		_, err = box.Command("true").Run()
		return errors.Join(err, box.Close())
	}
}

// The engine waits for a command in a cgroup until it has called execve. A guest can stop it before.
func TestCgroupHeldStarts(t *testing.T) {
	testenv.Need(t, testenv.Cgroup)
	eng := testbox.Open(t)
	release := hold(t, testbox.Start(t, eng, engine.Spec{Keep: true}))
	soon(t, "another sandbox", startOne(eng))
	release()
}

// A sandbox that ends slowly looks through the processes of the engine. It must not hold up a start, nor a start hold
// it up.
func TestCgroupHeldStartsAndOrphans(t *testing.T) {
	testenv.Need(t, testenv.Cgroup)
	eng := testbox.Open(t)
	box := testbox.Start(t, eng, engine.Spec{Seccomp: testbox.NoFilter, Keep: true})
	testbox.Run(t, box, "python3", "-c", `
import ctypes, os
if ctypes.CDLL(None).syscall(`+strconv.Itoa(unix.SYS_CLONE)+`, 0x8000 | 17, 0, 0, 0, 0) == 0: os._exit(0) # CLONE_PARENT`)
	release := hold(t, testbox.Start(t, eng, engine.Spec{Keep: true}))
	soon(t, "a sandbox with an orphan ends", box.Close)
	soon(t, "another sandbox", startOne(eng))
	release()
}
