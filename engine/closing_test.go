//go:build linux

package engine_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A sandbox that is closed while commands are being started in it refuses them,
// or ends them. Where there are cgroups, a command that came in while the last
// one left used to panic, or to use the cgroup of a sandbox that was gone.
func TestStartWhileClosing(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Program("true"))
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	const starters = 4
	var ran, refused atomic.Int64
	rounds, begin := 0, time.Now()
	for ; rounds < 10 || rounds < 150 && time.Since(begin) < 20*time.Second; rounds++ { // an emulated machine is slow
		box, err := eng.Start(t.Context(), engine.Spec{Limits: engine.Limits{Memory: 64 * engine.MiB, Pids: 32}})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		first := make(chan struct{})
		var once sync.Once
		for range starters {
			all.Go(func() {
				defer once.Do(func() { close(first) }) // even if none has run
				for {
					res, err := box.Command("true").Run()
					if err != nil {
						if !errors.Is(err, engine.ErrClosed) {
							t.Errorf("a start in a sandbox that is closing: %v", err)
						}
						refused.Add(1)
						return
					}
					if res.Outcome != engine.OutcomeOK && res.Outcome != engine.OutcomeLost {
						t.Errorf("outcome %s", res.Outcome)
					}
					ran.Add(1)
					once.Do(func() { close(first) })
				}
			})
		}
		<-first
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
	if refused.Load() != int64(rounds*starters) {
		t.Errorf("%d starters were refused, want %d", refused.Load(), rounds*starters)
	}
	t.Logf("%d commands ran in %d sandboxes", ran.Load(), rounds)
}
