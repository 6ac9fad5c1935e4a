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

// hold has starts in a sandbox that are held up, by a guest that stops whatever
// there is, until the result is called, which sees to it that they come back.
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

// soon fails the test when f has not returned by then.
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

// A command in a cgroup is waited for until it executes something, and a guest
// can stop it before.
func TestCgroupHeldStarts(t *testing.T) {
	testenv.Need(t, testenv.Cgroup)
	eng := testbox.Open(t)
	release := hold(t, testbox.Start(t, eng, engine.Spec{Keep: true}))
	soon(t, "another sandbox", startOne(eng))
	release()
}

// A sandbox that takes its time to end looks through the engine's processes, for
// which no start may be held up, nor hold it up.
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
