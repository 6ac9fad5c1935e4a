//go:build linux

package attack_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// The longest that a bomb may hold up others. An idle machine shows milliseconds, and some tens of them; tests run on
// busy machines and in emulated ones with a single CPU.
const (
	mostLate = 2 * time.Second  // of a timer in the host process
	mostSlow = 10 * time.Second // of a short command in another sandbox
)

// others is what runs beside a bomb: a heartbeat in this process, and a busy sandbox of the same user.
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
	if err != nil || res.Outcome != engine.OutcomeOK || string(res.Stdout) != "42\n" || len(res.Events) > 0 {
		t.Errorf("the neighbour: %+v, %v", res, err)
	}
	o.last = time.Since(begin)
	o.slow = max(o.slow, o.last)
	o.worked++
}

// end runs the neighbour once more and reports what it and the heartbeat met.
func (o *others) end(t *testing.T) {
	close(o.stop)
	o.running.Wait()
	o.work(t)
	t.Logf("heartbeat at most %v late; the neighbour took at most %v in %d runs", o.late.Round(time.Millisecond),
		o.slow.Round(time.Millisecond), o.worked)
	if o.late > mostLate {
		t.Errorf("the host process was held up for %v", o.late)
	}
	if o.slow > mostSlow {
		t.Errorf("the neighbour was held up for %v", o.slow)
	}
}

// Whatever a guest uses up, the outcome names the limit that stopped it, the host and its other sandboxes go on as
// before, and nothing is left of it.
func TestBombs(t *testing.T) {
	testenv.Long(t)
	testbox.LeavesNoCgroups(t)
	eng := testbox.Open(t)
	kernel := testbox.ByCgroups(t)
	neighbour := testbox.Start(t, eng, engine.Spec{Keep: true})
	for i, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			beside := besides(t, neighbour)
			box := testbox.Start(t, eng, engine.Spec{Limits: b.limits})
			mark := testbox.Marker(5000 + i)
			res := testbox.Run(t, box, b.program[0], append(slices.Clone(b.program[1:]), b.marked(mark)...)...)
			want := b.watchdog
			if kernel {
				want = b.cgroup
			}
			want.Check(t, res)
			if b.after != nil {
				b.after(t, neighbour, res)
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
			if left := testbox.Alive(t, mark); len(left) > 0 {
				t.Errorf("alive after Close: %v", left)
			}
			beside.end(t)
		})
	}
}

// marked returns the argument by which the processes are known.
func (b bomb) marked(mark string) []string {
	if b.program[0] == "python3" || b.program[0] == "sh" {
		return []string{mark}
	}
	return nil
}

// printed checks what the guest has printed.
func printed(want string) func(*testing.T, *engine.Sandbox, *engine.Result) {
	return func(t *testing.T, _ *engine.Sandbox, res *engine.Result) {
		t.Helper()
		if got := strings.TrimSpace(string(res.Stdout)); got != want {
			t.Errorf("the guest says %q, want %q", got, want)
		}
	}
}
