//go:build unix

package testbox

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A Level is a level of isolation. A test gets it by taking away from this machine what is above it.
type Level struct {
	Name   string                   // of the subtest
	change func(*engine.Host) error // takes away what is above; nil is nothing
	needs  testenv.Feature
	loose  bool // nothing confines
}

var (
	// Namespaces is this machine as it is, with user namespaces.
	Namespaces = Level{Name: "namespaces", needs: testenv.UserNS}
	// Landlock is Linux without namespaces.
	Landlock = Level{Name: "landlock", needs: testenv.Landlock(6), change: func(h *engine.Host) error {
		h.TryNamespaces = refuse
		return nil
	}}
	// ProcessGroups is a machine without any isolation: Linux with neither namespaces nor Landlock for root, where the
	// engine has more to do, and macOS with a stand-in for sandbox-exec(1) for an ordinary user, since nobody is root
	// there.
	ProcessGroups = Level{Name: "process groups", needs: testenv.Program("sh"), loose: true, change: withoutIsolation}
)

// Confined are the levels that keep guests from the host's files.
var Confined = []Level{Namespaces, Landlock}

// WithoutNamespaces is a Spec that accepts the level Landlock.
var WithoutNamespaces = engine.Spec{Keep: true, Degrade: []engine.Protection{engine.ProtectNamespaces}}

func refuse() error { return errors.New("not in this test") }

func withoutIsolation(h *engine.Host) error {
	if os.Geteuid() == 0 {
		h.TryNamespaces, h.Landlock = refuse, 0
		return nil
	}
	return AsMac(h)
}

// AsMac takes away from a machine what macOS lacks. The stand-in for sandbox-exec(1) confines nothing, but is as strict with
// its arguments as the real one.
func AsMac(h *engine.Host) (err error) {
	h.OS, h.Cgroup, h.TryNamespaces, h.Landlock, h.Seccomp = "darwin", cgroup.Place{}, nil, 0, false
	h.Become, h.Contained = false, h.UID == 0
	h.SandboxExec, err = moduleFile("internal/testbox/testdata/sandbox-exec")
	return err
}

// EachLevel runs a test in a subtest at each level, or at those given.
func EachLevel(t *testing.T, test func(t *testing.T, l Level), levels ...Level) {
	t.Helper()
	if len(levels) == 0 {
		levels = []Level{Namespaces, Landlock, ProcessGroups}
	}
	for _, l := range levels {
		t.Run(l.Name, func(t *testing.T) {
			testenv.Need(t, l.needs)
			test(t, l)
		})
	}
}

// LevelNamed returns a level by its name, for helpers.
func LevelNamed(name string) Level {
	levels := []Level{Namespaces, Landlock, ProcessGroups}
	return levels[slices.IndexFunc(levels, func(l Level) bool { return l.Name == name })]
}

// HasNamespaces reports whether sandboxes have namespaces.
func (l Level) HasNamespaces() bool { return l.Name == Namespaces.Name }

// Confines reports whether anything keeps a guest from the host's files.
func (l Level) Confines() bool { return !l.loose }

// Probe returns this machine with no more than the level.
func (l Level) Probe() (engine.Host, error) {
	h, err := engine.ProbeHost()
	if err == nil && l.change != nil {
		err = l.change(&h)
	}
	return h, err
}

// Host is Probe for tests.
func (l Level) Host(t testing.TB) engine.Host {
	t.Helper()
	h, err := l.Probe()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Open opens an engine at the level.
func (l Level) Open(t testing.TB) *engine.Engine {
	t.Helper()
	testenv.Need(t, l.needs)
	if l.change == nil {
		return OpenWith(t, engine.Options{})
	}
	h := l.Host(t)
	return OpenWith(t, engine.Options{Host: &h})
}

// Accept adds to a Spec what it must do without at the level.
func (l Level) Accept(s engine.Spec) engine.Spec {
	if !l.HasNamespaces() {
		s.Degrade = append(slices.Clone(s.Degrade), engine.ProtectNamespaces, engine.ProtectMemory)
		s.AllowNoIsolation = l.loose
	}
	return s
}

// Start starts a sandbox with a Spec that accepts the level, and closes it when the test ends.
func (l Level) Start(t testing.TB, eng *engine.Engine, s engine.Spec) *engine.Sandbox {
	t.Helper()
	return Start(t, eng, l.Accept(s))
}

// Sandbox starts a sandbox in a new engine.
func (l Level) Sandbox(t testing.TB, s engine.Spec) *engine.Sandbox {
	t.Helper()
	return l.Start(t, l.Open(t), s)
}

// SkipUntracked skips what leaves its group and its parent at once, in a process group on Linux: only macOS's kqueue
// could see it.
func (l Level) SkipUntracked(t *testing.T, script string) {
	t.Helper()
	if l.loose && runtime.GOOS == "linux" && (script == "setsid" || script == "double fork") {
		t.Skip("takes macOS's kqueue")
	}
}

// Open opens an engine that has namespaces, and skips the test where there are none.
func Open(t testing.TB) *engine.Engine {
	t.Helper()
	return Namespaces.Open(t)
}

// Sandbox starts a sandbox with namespaces, in a new engine.
func Sandbox(t testing.TB, s engine.Spec) *engine.Sandbox {
	t.Helper()
	return Namespaces.Sandbox(t, s)
}
