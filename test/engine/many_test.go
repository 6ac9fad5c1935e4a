//go:build linux

package engine_test

import (
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// Sandboxes of one template share nothing writable.
func TestSandboxesAreApart(t *testing.T) {
	eng := testbox.Open(t)
	a, b := testbox.Start(t, eng, engine.Spec{}), testbox.Start(t, eng, engine.Spec{})
	c := testbox.Start(t, eng, engine.Spec{})
	testbox.Output(t, a, "echo a >/tmp/x; echo a >/dev/shm/x; echo a >/workspace/x; echo a >/var/tmp/x 2>/dev/null || "+
		"true")
	for _, other := range []*engine.Sandbox{b, c} {
		if got := testbox.Output(t, other, "ls /tmp /dev/shm /workspace; ls /proc | grep -c '^[0-9]'"); strings.Contains(got,
			"x") {
			t.Errorf("another sandbox sees %q", got)
		}
	}
}

func TestManySandboxesLeaveNothing(t *testing.T) {
	eng := testbox.Open(t)
	for range 100 {
		box, err := eng.Start(context.Background(), engine.Spec{Name: "leave-nothing"})
		if err != nil {
			t.Fatal(err)
		}
		if res := testbox.Run(t, box, "true"); res.Outcome != engine.OutcomeOK {
			t.Fatalf("%+v", res)
		}
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left := testbox.Alive(t, "leave-nothing"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Five hundred sandboxes with a running command each do not take a thread each, and all end with the engine.
func TestFiveHundredAtOnce(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := threads(t)
	for range 500 {
		box, err := eng.Start(context.Background(), engine.Spec{Name: "five-hundred"})
		if err != nil {
			t.Fatal(err)
		}
		cmd := box.Command("sleep", "1000")
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(testbox.Alive(t, "five-hundred")); n != 500 {
		t.Errorf("%d sandboxes live", n)
	}
	// Watchdogs look in turns of four a CPU, also on a busy machine.
	if more := threads(t) - before; more > 4*runtime.NumCPU()+30 {
		t.Errorf("%d more threads", more)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if left := testbox.Alive(t, "five-hundred"); len(left) > 0 {
		t.Errorf("left: %d", len(left))
	}
}

func threads(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
