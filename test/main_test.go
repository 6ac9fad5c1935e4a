//go:build linux

package test

import (
	"context"
	"errors"
	"io"
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
	"host":    hostToBeKilled,
	"coder":   codeHost,
	"bench":   benchHost,
	"limited": limitedHost,

	"undumpable": undumpable,
	"workspace":  workspaceHost,
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

// startHelper starts one; what it prints is read from stdout. The caller waits
// for it.
func startHelper(t testing.TB, helper string, args ...string) (cmd *exec.Cmd, stdout io.Reader) {
	t.Helper()
	cmd = exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "TEGMEN_TEST_HELPER="+helper)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdout
}

func open(t testing.TB) *engine.Engine {
	t.Helper()
	if bare {
		return bareEngine(t)
	}
	testenv.Need(t, testenv.UserNS)
	return openWith(t, engine.Options{})
}

// bare has the tests run on the rung without namespaces, as far as what they
// show is promised there: TEGMEN_TEST_RUNG=landlock.
var bare = os.Getenv("TEGMEN_TEST_RUNG") == "landlock"

// bareHost is this machine, refusing namespaces.
func bareHost() engine.Host {
	h, err := engine.ProbeHost()
	if err != nil {
		panic(err)
	}
	h.TryNamespaces = func() error { return errors.New("not in this test") }
	return h
}

func bareEngine(t testing.TB) *engine.Engine {
	t.Helper()
	testenv.Need(t, testenv.Landlock(6))
	h := bareHost()
	return openWith(t, engine.Options{Host: &h})
}

// onRung accepts the rung that the tests run on.
func onRung(s engine.Spec) engine.Spec {
	if bare {
		s.Degrade = append(s.Degrade, engine.ProtectNamespaces)
	}
	return s
}

func openWith(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	eng, err := engine.Open(o)
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

// unfiltered is an engine whose sandboxes have no Landlock domain; with off,
// which leaves the filter out, it shows what the namespaces stop by themselves.
func unfiltered(t testing.TB) *engine.Engine {
	t.Helper()
	testenv.Need(t, testenv.UserNS)
	h, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	h.Landlock = 0
	return openWith(t, engine.Options{Host: &h})
}

var off = engine.Seccomp{Profile: engine.SeccompOff}

func start(t testing.TB, eng *engine.Engine, s engine.Spec) *engine.Sandbox {
	t.Helper()
	box, err := eng.Start(context.Background(), onRung(s))
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
