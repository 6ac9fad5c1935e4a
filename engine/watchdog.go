package engine

import (
	"fmt"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/workspace"
)

// This file is what the engine does while commands run, for the limits that the
// kernel does not see to alone.

// watch begins to look after the sandbox's limits, with the first command.
func (s *Sandbox) watch() {
	s.mu.Lock()
	first := !s.watched
	s.watched = true
	s.mu.Unlock()
	if !first {
		return
	}
	if dir := s.plan.budget; dir != "" {
		go s.watchWorkspace(dir, workspace.DiskUse(dir))
	}
	exceeded := s.box.Watch()
	go func() {
		for e := range exceeded {
			s.exceeded(e)
		}
	}()
}

func (s *Sandbox) exceeded(e box.Exceeded) {
	switch {
	case e.Killed:
		if !s.plan.Spec.Keep {
			s.kill()
		}
	case e.What == box.Memory:
		s.killAll(OutcomeOOM, e.Again)
	case e.What == box.Protected:
		s.killAll(OutcomeProtect, e.Again)
	default:
		s.killAll(OutcomePids, e.Again)
	}
}

// killAll ends the commands of a sandbox that has more than it may. If that has
// been tried before, or there are none, it is not they who have it: then the
// sandbox ends.
func (s *Sandbox) killAll(why Outcome, again bool) {
	s.mu.Lock()
	all := make([]*run, 0, len(s.running))
	for r := range s.running {
		all = append(all, r)
	}
	s.mu.Unlock()
	for _, r := range all {
		r.kill(why)
	}
	if again || len(all) == 0 {
		s.kill()
	}
}

// watchWorkspace ends what adds more to the workspace than it may, until the
// sandbox ends. It looks as often as that takes a tenth of a CPU, and at most ten
// times a second. base is what was there before.
func (s *Sandbox) watchWorkspace(dir string, base int64) {
	const least = 100 * time.Millisecond
	over := false
	box.Poll(s.done, nil, least, func() time.Duration {
		begin := time.Now()
		added := workspace.DiskUse(dir) - base
		cost := time.Since(begin)
		if again := over; added > int64(s.plan.limits.Workspace) {
			over = true
			s.added.Store(added)
			s.killAll(OutcomeDisk, again)
		} else {
			over = false
		}
		return max(9*cost, least)
	})
}

// overBudget says what was seen.
func (s *Sandbox) overBudget() string {
	return fmt.Sprintf("the watchdog saw %s more in it than before", Bytes(s.added.Load()))
}
