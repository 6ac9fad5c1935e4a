//go:build linux

package test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/cgroup"
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

// rung has the tests run without namespaces, as far as what they show is promised
// there: TEGMEN_TEST_RUNG.
var rung = rungs[os.Getenv("TEGMEN_TEST_RUNG")]

// bare is whether there are no namespaces, and loose whether there are only process
// groups, and there would be a kqueue on macOS.
var bare, loose = rung != nil, rung != nil && rungHost(rung).Landlock == 0

// rungs make of this machine one that has no more than that level of isolation.
var rungs = map[string]func(*engine.Host){
	"landlock": func(h *engine.Host) { h.TryNamespaces = refuse },
	"none":     func(h *engine.Host) { h.TryNamespaces, h.Landlock = refuse, 0 },
	"seatbelt": func(h *engine.Host) { asMac(h); h.SandboxExec = fakeSandboxExec() },
}

func refuse() error { return errors.New("not in this test") }

// asMac makes it a machine without what only Linux has.
func asMac(h *engine.Host) {
	h.OS, h.Cgroup, h.TryNamespaces, h.Landlock, h.Seccomp = "darwin", cgroup.Place{}, nil, 0, false
	h.Become, h.Contained = false, h.UID == 0
}

// fakeSandboxExec confines nothing, but is as strict with its arguments as the
// real one.
func fakeSandboxExec() string {
	path, err := filepath.Abs("testdata/sandbox-exec")
	if err != nil {
		panic(err)
	}
	return path
}

func rungHost(of func(*engine.Host)) engine.Host {
	h, err := engine.ProbeHost()
	if err != nil {
		panic(err)
	}
	of(&h)
	return h
}

// bareHost is this machine on the rung that the tests run on, or without
// namespaces.
func bareHost() engine.Host {
	if rung != nil {
		return rungHost(rung)
	}
	return rungHost(rungs["landlock"])
}

func bareEngine(t testing.TB) *engine.Engine {
	t.Helper()
	h := bareHost()
	if h.OS == "linux" && h.Landlock > 0 || rung == nil {
		testenv.Need(t, testenv.Landlock(6))
	}
	return openWith(t, engine.Options{Host: &h})
}

// onRung accepts the rung that the tests run on.
func onRung(s engine.Spec) engine.Spec {
	if bare {
		s.Degrade = append(s.Degrade, engine.ProtectNamespaces, engine.ProtectMemory)
		s.AllowNoIsolation = loose
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
