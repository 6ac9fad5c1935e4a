//go:build linux

package test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// helpers are what copies of this test binary do, named by TEGMEN_TEST_HELPER:
// what cannot be done in the test's own process.
var helpers = map[string]func(){
	"host":  hostToBeKilled,
	"bench": benchHost,

	"undumpable": undumpable,
}

func TestMain(m *testing.M) {
	if f, ok := helpers[os.Getenv("TEGMEN_TEST_HELPER")]; ok {
		f()
		return
	}
	os.Exit(testenv.Main(m))
}

// reexec runs a helper to its end.
func reexec(helper string, args ...string) (stdout string, err error) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "TEGMEN_TEST_HELPER="+helper)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

func open(t testing.TB) *engine.Engine {
	t.Helper()
	testenv.Need(t, testenv.UserNS)
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

func start(t testing.TB, eng *engine.Engine, s engine.Spec) *engine.Sandbox {
	t.Helper()
	box, err := eng.Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

// sandbox starts one in an engine of its own.
func sandbox(t testing.TB, s engine.Spec) *engine.Sandbox {
	t.Helper()
	return start(t, open(t), s)
}

// within bounds what a test may wait for.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func run(t testing.TB, box *engine.Sandbox, name string, args ...string) *engine.Result {
	t.Helper()
	res, err := box.CommandContext(within(t, time.Minute), name, args...).Run()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return res
}

// output is what a shell script prints, which must end OK.
func output(t testing.TB, box *engine.Sandbox, script string) string {
	t.Helper()
	res := run(t, box, "sh", "-c", script)
	if res.Outcome != engine.OK {
		t.Fatalf("%s: %s %d, stderr %s", script, res.Outcome, res.ExitCode, res.Stderr)
	}
	return strings.TrimSpace(string(res.Stdout))
}
