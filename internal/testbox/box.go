//go:build unix

package testbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// NoFilter leaves the seccomp filter out.
var NoFilter = engine.Seccomp{Profile: engine.SeccompOff}

// OpenWith opens an engine and closes it when the test ends.
func OpenWith(t testing.TB, o engine.Options) *engine.Engine {
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

// OpenOn opens an engine on this machine as change leaves it; nil changes nothing.
func OpenOn(t testing.TB, change func(*engine.Host)) *engine.Engine {
	t.Helper()
	h := host(t)
	if change != nil {
		change(&h)
	}
	return OpenWith(t, engine.Options{Host: &h})
}

// OpenWithoutLandlock opens an engine whose sandboxes have namespaces and no Landlock domain. With NoFilter it shows
// what the namespaces stop by themselves.
func OpenWithoutLandlock(t testing.TB) *engine.Engine {
	t.Helper()
	testenv.Need(t, testenv.UserNS)
	return OpenOn(t, func(h *engine.Host) { h.Landlock = 0 })
}

func host(t testing.TB) engine.Host {
	t.Helper()
	h, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// CompilePolicy compiles a Spec that has a policy of its own, which needs libseccomp.
func CompilePolicy(t testing.TB, eng *engine.Engine, s engine.Spec) *engine.Plan {
	t.Helper()
	plan, err := eng.Compile(s)
	if errors.Is(err, seccomp.ErrNoCompiler) {
		testenv.Need(t, testenv.Libseccomp(err))
	}
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// Start starts a sandbox and closes it when the test ends.
func Start(t testing.TB, eng *engine.Engine, s engine.Spec) *engine.Sandbox {
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

// Within returns a context that bounds what a test may wait for.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// Run runs a program inside, for a minute at most. How it ends is in the Result.
func Run(t testing.TB, box *engine.Sandbox, name string, args ...string) *engine.Result {
	t.Helper()
	res, err := box.CommandContext(Within(t, time.Minute), name, args...).Run()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return res
}

// Output returns what a shell script prints inside, without the last newline. The script must succeed.
func Output(t testing.TB, box *engine.Sandbox, script string) string {
	t.Helper()
	res := Run(t, box, "sh", "-c", script)
	if res.Outcome != engine.OutcomeOK {
		t.Fatalf("%s: %s %d, stdout %s, stderr %s", script, res.Outcome, res.ExitCode, res.Stdout, res.Stderr)
	}
	return strings.TrimSpace(string(res.Stdout))
}
