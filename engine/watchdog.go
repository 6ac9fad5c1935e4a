package engine

import (
	"fmt"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/workspace"
)

// This file is what the engine does while commands run, for the limits that the
// kernel does not see to alone.

// watch begins to look after the sandbox's limits.
func (s *Sandbox) watch() {
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

// watchCPU ends the run when it and all that descends from it have used more than
// Limits.CPUTime, and the second that the kernel gives on top. It looks when that
// could at the earliest be so, with all CPUs at work.
func (r *run) watchCPU() {
	limit := r.sandbox.plan.limits.CPUTime
	if limit == UnlimitedTime {
		return
	}
	limit += time.Second
	cpus := time.Duration(max(r.sandbox.engine.host.CPUs, 1))
	next := func(left time.Duration) time.Duration { return max(left/cpus, 10*time.Millisecond) }
	go box.Poll(r.over, nil, next(limit), func() time.Duration {
		left := limit
		if p := r.running(); p != nil {
			left -= p.Used().CPU
		}
		if left <= 0 {
			r.kill(OutcomeCPU)
			return 0
		}
		return next(left)
	})
}
