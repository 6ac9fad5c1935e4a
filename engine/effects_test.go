//go:build linux

package engine_test

import (
	"errors"
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func ownCgroup(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// With NoCgroups the process stays in its cgroup, and no cgroups are made, although
// it could make some. This machine's place is made up, so that there is always one.
func TestNoCgroups(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	h := testbox.Namespaces.Host(t)
	place := t.TempDir()
	h.Cgroup = cgroup.Place{Dir: place, Controllers: []string{"cpu", "cpuset", "io", "memory", "pids"}, Leave: true}
	before := ownCgroup(t)

	eng := testbox.OpenWith(t, engine.Options{Host: &h, NoCgroups: true})
	box := testbox.Start(t, eng, engine.Spec{Limits: engine.Limits{Memory: engine.GiB, Pids: 64}})
	if res := testbox.Run(t, box, "true"); res.Outcome != engine.OutcomeOK || res.Usage.By == engine.ByCgroup {
		t.Errorf("%s, counted by %q", res.Outcome, res.Usage.By)
	}
	if now := ownCgroup(t); now != before {
		t.Errorf("this process has moved from %s to %s", before, now)
	}
	if made, err := os.ReadDir(place); err != nil || len(made) > 0 {
		t.Errorf("made %v, %v", made, err)
	}
	for _, limit := range box.Plan().Limits {
		for _, e := range limit.Enforcers {
			if e.Kind == engine.ByCgroup {
				t.Errorf("%s", limit)
			}
		}
	}
	_, err := eng.Compile(engine.Spec{Limits: engine.Limits{CPUs: 1}})
	if !errors.Is(err, engine.ErrUnsupported) {
		t.Errorf("a limit that needs a cgroup: %v", err)
	}

	// Without NoCgroups the place is used, and is none.
	other := testbox.OpenWith(t, engine.Options{Host: &h})
	if box, err := other.Start(t.Context(), engine.Spec{}); err == nil {
		t.Errorf("a sandbox with a cgroup in %s: %v", place, box.Close())
	}
	if now := ownCgroup(t); now != before {
		t.Errorf("this process has moved from %s to %s", before, now)
	}
}

// What a Plan prints for the private directory is text like any other to a guest.
func TestPrivateDirectoryInValues(t *testing.T) {
	testbox.EachLevel(t, func(t *testing.T, l testbox.Level) {
		const value = "a/(private)/tmp:/(private)/workspace"
		env := []string{"X=" + value, "HOME2=/(private)/tmp"}
		box := l.Sandbox(t, engine.Spec{Keep: true, Env: env})
		cmd := box.Command("sh", "-c", `printf '%s\n' "$X" "$HOME2" "$Y"
			cd "$TMPDIR" && cd "$HOME" && touch "$HOME/x" && rm x`)
		cmd.ExtraEnv = []string{"Y=/(private)"}
		out, err := cmd.Output()
		if want := value + "\n/(private)/tmp\n/(private)\n"; err != nil || string(out) != want {
			t.Errorf("got %q, %v; want %q", out, err, want)
		}
	})
}
