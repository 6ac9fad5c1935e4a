package testbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// SmallMemory is a limit that an interpreter fits into, which takes 10 MiB at most, and little else.
const SmallMemory = 16 * engine.MiB

// Eat is Python: eat() takes memory until something stops it.
const Eat = `
def eat():
    l = []
    while True: l.append(b"x" * (1 << 18))
`

// An End is how a program must end that meets a limit.
type End struct {
	Outcome engine.Outcome // what the Result must say
	Code    int            // the exit code; 0 is that of the outcome
	Event   string         // the limit that must be among the events; "" is that there must be none
}

// Ends returns an End by its fields.
func Ends(outcome engine.Outcome, code int, event string) End { return End{outcome, code, event} }

// AnyEvent is an event or none.
const AnyEvent = "?"

// Check compares a result with it.
func (e End) Check(t testing.TB, res *engine.Result) {
	t.Helper()
	if res.Outcome != e.Outcome || e.Code != 0 && res.ExitCode != e.Code {
		t.Errorf("got %s %d, want %s %d (stderr %.300s)", res.Outcome, res.ExitCode, e.Outcome, e.Code, res.Stderr)
	}
	var limits []string
	for _, event := range res.Events {
		limits = append(limits, string(event.Limit))
		if event.Count < 1 || event.Detail == "" {
			t.Errorf("an event that says nothing: %+v", event)
		}
	}
	switch e.Event {
	case AnyEvent:
	case "":
		if len(limits) > 0 {
			t.Errorf("events %+v, want none", res.Events)
		}
	default:
		if !slices.Contains(limits, e.Event) {
			t.Errorf("events %+v, want one of %s", res.Events, e.Event)
		}
	}
	t.Logf("%s %d %v, by %s %s at most; %+v",
		res.Outcome, res.ExitCode, res.Usage.Wall.Round(time.Millisecond), res.Usage.By, res.Usage.Memory, res.Events)
}

// ByCgroups reports whether the kernel enforces memory and processes here, not the watchdog.
func ByCgroups(t testing.TB) bool {
	t.Helper()
	return host(t).Cgroup.Has("memory", "pids")
}

// Cgroups lists the cgroups that engines have made for sandboxes, if this process makes them.
func Cgroups(t testing.TB) (names []string) {
	t.Helper()
	dir := host(t).Cgroup.Dir
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		// tegmen-host- is where an engine has moved to, as this process has.
		if e.IsDir() && strings.HasPrefix(e.Name(), "tegmen-") && !strings.HasPrefix(e.Name(), "tegmen-host-") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names
}

// LeavesNoCgroups fails the test if there are cgroups when all its engines are closed. Call it before they are opened.
func LeavesNoCgroups(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if left := Cgroups(t); len(left) > 0 {
			t.Errorf("cgroups that are left: %v", left)
		}
	})
}

// Resident returns what this process has in memory: all of it, and the anonymous part.
func Resident(t testing.TB) (all, anonymous engine.Bytes) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	field := func(name string) (kib engine.Bytes) {
		_, line, _ := strings.Cut(string(b), name)
		if _, err := fmt.Sscan(line, &kib); err != nil {
			t.Fatal(err)
		}
		return kib * engine.KiB
	}
	return field("VmRSS:"), field("RssAnon:")
}

// Python is a program of some lines.
func Python(lines string, args ...any) []string {
	return []string{"python3", "-c", fmt.Sprintf(lines, args...)}
}

// Ready starts a shell script that prints "ready", and returns then. The caller waits for it.
func Ready(t testing.TB, box *engine.Sandbox, script string) (cmd *engine.Cmd, stdout io.Closer) {
	t.Helper()
	cmd = box.CommandContext(Within(t, time.Minute), "sh", "-c", script)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	t.Cleanup(func() { _, _ = r.Close(), w.Close() }) // again
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	return cmd, r
}
