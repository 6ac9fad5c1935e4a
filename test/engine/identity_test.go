//go:build linux

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestGuestIsNeverHostRoot(t *testing.T) {
	testenv.NoRace(t)
	testenv.Need(t, testenv.Root)
	box := testbox.Sandbox(t, engine.Spec{User: &engine.User{}})
	mark := testbox.Marker(500)
	cmd := box.Command("sleep", mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := testbox.Alive(t, mark)
	if len(pids) != 1 {
		t.Fatalf("%v", pids)
	}
	// This process keeps its own identity, whichever threads it starts from.
	for range 10 {
		testbox.Sandbox(t, engine.Spec{})
	}
	if uid := testbox.Owner(t, "/proc/self"); uid != 0 {
		t.Errorf("this process now belongs to uid %d", uid)
	}
	b, err := os.ReadFile("/proc/" + pids[0] + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == "Uid:" || f[0] == "Gid:" {
			for _, id := range f[1:] {
				if id != "65534" {
					t.Errorf("on the host: %s", line)
				}
			}
		}
		if f := strings.Fields(line); f[0] == "Groups:" && len(f) > 1 {
			t.Errorf("on the host: %s", line)
		}
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A host process loses its dumpable flag when it starts something as another user. It can start sandboxes all the
// same, and does not get the flag back.
func TestHostThatIsNotDumpable(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	out, err := testbox.Helper(t, "undumpable").Output()
	if err != nil || string(out) != "ok ok 0" {
		t.Errorf("%q, %v; want two starts, and the flag as it was", out, err)
	}
}

func undumpable() {
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		panic(err)
	}
	for range 2 {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			panic(err)
		}
		box, err := eng.Start(context.Background(), engine.Spec{})
		if err != nil {
			panic(err)
		}
		res, err := box.Command("true").Run()
		if err != nil {
			panic(err)
		}
		fmt.Print(res.Outcome, " ")
	}
	// No background work needs the flag any more.
	err = eng.Close()
	flag, ferr := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err := errors.Join(err, ferr); err != nil {
		panic(err)
	}
	fmt.Print(flag)
}
