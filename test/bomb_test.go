//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// The most that a bomb may hold up others. They are far above what is seen on an
// idle machine (some milliseconds, and some tens of them), since tests run on busy
// ones, and in emulated ones of a single CPU.
const (
	mostLate = 2 * time.Second  // of a timer in the host process
	mostSlow = 10 * time.Second // of a short command in another sandbox
)

// others is what runs beside a bomb: a heartbeat in this process, and another
// sandbox, of the same user, that works.
type others struct {
	stop      chan struct{}
	running   sync.WaitGroup
	late      time.Duration // the most that the heartbeat was
	slow      time.Duration // the longest that a piece of work took
	last      time.Duration // that the last one took
	worked    int
	neighbour *engine.Sandbox
}

// besides starts them.
func besides(t *testing.T, neighbour *engine.Sandbox) *others {
	t.Helper()
	o := &others{stop: make(chan struct{}), neighbour: neighbour}
	o.running.Go(o.beat)
	o.running.Go(func() {
		for {
			select {
			case <-o.stop:
				return
			case <-time.After(max(300*time.Millisecond, 3*o.last)): // so as not to be a bomb itself
				o.work(t)
			}
		}
	})
	return o
}

func (o *others) beat() {
	const every = 10 * time.Millisecond
	for {
		begin := time.Now()
		select {
		case <-o.stop:
			return
		case <-time.After(every):
			o.late = max(o.late, time.Since(begin)-every)
		}
	}
}

// work forks, writes a file, and computes.
func (o *others) work(t *testing.T) {
	begin := time.Now()
	res, err := o.neighbour.Command("sh", "-c", "echo $((6 * $(echo 7))) >/tmp/f; cat /tmp/f").Run()
	if err != nil || res.Outcome != engine.OK || string(res.Stdout) != "42\n" || len(res.Events) > 0 {
		t.Errorf("the neighbour: %+v, %v", res, err)
	}
	o.last = time.Since(begin)
	o.slow = max(o.slow, o.last)
	o.worked++
}

// end has the neighbour work once more and says what they met.
func (o *others) end(t *testing.T) {
	close(o.stop)
	o.running.Wait()
	o.work(t)
	t.Logf("heartbeat at most %v late; the neighbour took at most %v in %d runs", o.late.Round(time.Millisecond), o.slow.Round(time.Millisecond), o.worked)
	if o.late > mostLate {
		t.Errorf("the host process was held up for %v", o.late)
	}
	if o.slow > mostSlow {
		t.Errorf("the neighbour was held up for %v", o.slow)
	}
}

// ends is how a bomb has to end. An event is the limit that has to be among the
// events; "" is that there must be none.
type ends struct {
	outcome engine.Outcome
	code    int // 0: that of the outcome
	event   string
}

// anyEvent is one or none.
const anyEvent = "?"

// byCgroups tells whether the kernel enforces memory and processes here, and not
// the watchdog.
func byCgroups(t testing.TB) bool {
	t.Helper()
	h, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	return h.Cgroup.Has("memory", "pids") && !bare
}

// check compares; where the two mechanisms differ, a test has two.
func (e ends) check(t *testing.T, res *engine.Result) {
	t.Helper()
	if res.Outcome != e.outcome || e.code != 0 && res.ExitCode != e.code {
		t.Errorf("got %s %d, want %s %d (stderr %.300s)", res.Outcome, res.ExitCode, e.outcome, e.code, res.Stderr)
	}
	var limits []string
	for _, event := range res.Events {
		limits = append(limits, event.Limit)
		if event.Count < 1 || event.Detail == "" {
			t.Errorf("an event that says nothing: %+v", event)
		}
	}
	switch e.event {
	case anyEvent:
	case "":
		if len(limits) > 0 {
			t.Errorf("events %+v, want none", res.Events)
		}
	default:
		if !slices.Contains(limits, e.event) {
			t.Errorf("events %+v, want one of %s", res.Events, e.event)
		}
	}
	t.Logf("%s %d %v, by %s %s at most; %+v", res.Outcome, res.ExitCode, res.Usage.Wall.Round(time.Millisecond), res.Usage.By, res.Usage.Memory, res.Events)
}

// groups lists the cgroups that engines have made for sandboxes, where this
// process makes them.
func groups(t testing.TB) (names []string) {
	t.Helper()
	h, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	if h.Cgroup.Dir == "" {
		return nil
	}
	entries, err := os.ReadDir(h.Cgroup.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		// tegmen-host- is where an engine has moved to, as this process has.
		if e.IsDir() && strings.HasPrefix(e.Name(), "tegmen-") && !strings.HasPrefix(e.Name(), "tegmen-host-") {
			names = append(names, filepath.Join(h.Cgroup.Dir, e.Name()))
		}
	}
	return names
}

// noGroups fails the test when there are some after all its engines are closed.
// It is called before they are opened.
func noGroups(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if left := groups(t); len(left) > 0 {
			t.Errorf("cgroups that are left: %v", left)
		}
	})
}

// Whatever a guest uses up, the outcome names the limit that has stopped it, the
// host goes on as before and so do its other sandboxes, and nothing is left of it.
func TestBombs(t *testing.T) {
	noGroups(t)
	eng := open(t)
	kernel := byCgroups(t)
	neighbour := start(t, eng, engine.Spec{Keep: true})
	for i, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			beside := besides(t, neighbour)
			box := start(t, eng, engine.Spec{Limits: b.limits})
			mark := marker(5000 + i)
			res := run(t, box, b.program[0], append(slices.Clone(b.program[1:]), b.marked(mark)...)...)
			want := b.watchdog
			if kernel {
				want = b.cgroup
			}
			want.check(t, res)
			if b.after != nil {
				b.after(t, neighbour, res)
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
			if left := alive(t, mark); len(left) > 0 {
				t.Errorf("alive after Close: %v", left)
			}
			beside.end(t)
		})
	}
}

// marked is the argument by which its processes are known.
func (b bomb) marked(mark string) []string {
	if b.program[0] == "python3" || b.program[0] == "sh" {
		return []string{mark}
	}
	return nil
}

// printed is what a result's output has to be.
func printed(want string) func(*testing.T, *engine.Sandbox, *engine.Result) {
	return func(t *testing.T, _ *engine.Sandbox, res *engine.Result) {
		t.Helper()
		if got := strings.TrimSpace(string(res.Stdout)); got != want {
			t.Errorf("the guest says %q, want %q", got, want)
		}
	}
}

// python is a program of some lines.
func python(lines string, args ...any) []string {
	return []string{"python3", "-c", fmt.Sprintf(lines, args...)}
}
