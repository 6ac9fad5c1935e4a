package engine

import (
	"fmt"
	"path/filepath"
	"time"
)

// decideBudget is for a workspace that is the host's own directory: only where
// that is asked for is what is added to it watched.
func (p *Plan) decideBudget() {
	if p.workspace == nil || p.overlaid() || p.Spec.Limits.Workspace == 0 || p.limits.Workspace == Unlimited {
		return
	}
	p.budget = filepath.Clean(p.workspace.Path)
	p.limit("workspace", limitText(p.limits.Workspace), byWatchdog)
}

// mindWorkspace ends what adds more to the workspace than it may, until the
// sandbox ends. It looks as often as that takes a tenth of a CPU, and not more
// often than ten times a second. base is what was there before.
func (s *Sandbox) mindWorkspace(dir string, base Bytes) {
	limit, over := s.plan.limits.Workspace, false
	for cost := time.Duration(0); ; {
		t := time.NewTimer(max(9*cost, 100*time.Millisecond))
		select {
		case <-t.C:
		case <-s.done:
			t.Stop()
			return
		}
		begin := time.Now()
		added := diskUse(dir) - base
		cost = time.Since(begin)
		if added <= limit {
			over = false
			continue
		}
		s.added.Store(int64(added))
		s.exceeded(Disk, over)
		over = true
	}
}

// overBudget says what was seen.
func (s *Sandbox) overBudget() string {
	return fmt.Sprintf("the watchdog saw %s more in it than before", Bytes(s.added.Load()))
}
