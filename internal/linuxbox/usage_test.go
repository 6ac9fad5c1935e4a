//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/sample"
)

// The most that a watchdog has seen is kept, and each time above a limit is counted
// once.
func TestSampled(t *testing.T) {
	var w sampled
	if w.usage() != (box.Usage{}) || w.hostOOM() {
		t.Error("used before anything was looked at")
	}
	limit := box.Watch{Memory: 1, Pids: 1, Kill: true}
	now, next, err := w.look(limit, 1, func() int64 { return 1 << 40 })
	if err != nil || next <= 0 || now.Memory != 1<<40 || now.Pids != 0 || !now.Idle {
		t.Errorf("%+v, again in %v, %v", now, next, err)
	}
	if u := w.usage(); u.By != box.ByWatchdog || u.Memory != 1<<40 || u.OOM != 1 || u.ForkFail != 0 {
		t.Errorf("used %+v", u)
	}
	for _, c := range []struct {
		memory, pids  bool
		oom, forkFail int64
	}{{true, true, 1, 1}, {true, true, 1, 1}, {false, true, 1, 1}, {true, false, 2, 1}, {false, true, 2, 2}} {
		w.note(c.memory, c.pids)
		if u := w.usage(); u.OOM != c.oom || u.ForkFail != c.forkFail {
			t.Errorf("%+v: %+v", c, u)
		}
	}
	w.asked = time.Time{} // long ago
	if now, _, _ := w.look(limit, 1, func() int64 { return 0 }); now.Memory != 0 || w.usage().Memory != 1<<40 {
		t.Errorf("%+v, %+v", now, w.usage())
	}
	failed := errors.New("cannot be sampled")
	w.add(nil, failed)
	if now, _, err := w.look(limit, 1, nil); !errors.Is(err, failed) || now.Memory != box.Unlimited {
		t.Errorf("what cannot be sampled is within its limits: %+v, %v", now, err)
	}
	w.close()
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		w    box.Watch
		want sample.Limits
	}{
		{box.Watch{Memory: box.Unlimited, Pids: 5}, sample.Limits{CPUs: 2}},
		{box.Watch{Memory: 7, Pids: 5, Kill: true}, sample.Limits{CPUs: 2, Memory: 7, Processes: 5}},
	} {
		if got := limits(c.w, 2); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.w, got, c.want)
		}
	}
}
