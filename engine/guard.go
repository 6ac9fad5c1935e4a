package engine

import (
	"time"
)

// This file is what the engine does while commands run, for the limits that the
// kernel does not see to alone.

// enter counts a command in, and returns what its sandbox has used before it. Its
// error is ErrClosed.
func (s *Sandbox) enter(c *Cmd) (reading, error) {
	if err := s.box.enter(); err != nil {
		return reading{}, err
	}
	s.mu.Lock()
	first, last := !s.guarded, s.last
	s.guarded = true
	s.running[c] = struct{}{}
	s.last = nil
	s.mu.Unlock()
	if first {
		if dir := s.plan.budget; dir != "" {
			go s.mindWorkspace(dir, diskUse(dir))
		}
		s.box.guard(s)
		return reading{}, nil
	}
	if last != nil {
		return *last, nil
	}
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	return s.box.measure(), nil
}

// leave counts it out. now is what the sandbox has used.
func (s *Sandbox) leave(c *Cmd, now reading) {
	s.mu.Lock()
	delete(s.running, c)
	if now.empty && len(s.running) == 0 {
		s.last = &now
	}
	s.mu.Unlock()
	s.box.leave()
}

// exceeded ends the commands of a sandbox that has more than it may. When that
// has been tried before, or there are none, it is not they who have it: then the
// sandbox ends.
func (s *Sandbox) exceeded(why Outcome, again bool) {
	s.mu.Lock()
	all := make([]*Cmd, 0, len(s.running))
	for c := range s.running {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.kill(why)
	}
	if again || len(all) == 0 {
		s.kill()
	}
}

// accountCPU ends the command when it and all that descends from it have used
// more than Limits.CPUTime, and the second that the kernel gives, too. It looks
// when that could at the earliest be so, with all CPUs at work.
func (c *Cmd) accountCPU() {
	limit := c.sandbox.plan.limits.CPUTime
	if limit == Unlimited {
		return
	}
	limit += time.Second
	cpus := time.Duration(max(c.sandbox.engine.host.CPUs, 1))
	ended := make(chan struct{})
	c.undo = append(c.undo, func() { close(ended) })
	go func() {
		for left := limit; left > 0; left = limit - c.sandbox.box.measure().since(c.before).cpu {
			t := time.NewTimer(max(left/cpus, 10*time.Millisecond))
			select {
			case <-t.C:
			case <-ended:
				t.Stop()
				return
			}
		}
		c.kill(CPU)
	}()
}

// watchdog looks at what a sandbox has until it ends, as often as it has to.
func (s *Sandbox) watchdog(limits watch) {
	over := false
	for wait := s.box.firstLook(limits); ; {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.done:
			t.Stop()
			return
		}
		var now sight
		now, wait = s.box.look(limits)
		switch {
		case now.memory > limits.memory:
			s.exceeded(OOM, over)
			over = true
		case limits.kill && now.pids > limits.pids:
			s.exceeded(Pids, over)
			over = true
		case now.idle && s.quiet():
			over = false
			select {
			case <-s.wake:
				wait = s.box.firstLook(limits)
			case <-s.done:
				return
			}
		default:
			over = false
		}
	}
}

// quiet tells whether there is no command, also none that is being started, which
// the watchdog does not see yet.
func (s *Sandbox) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) == 0
}

// sight is what the watchdog sees.
type sight struct {
	memory Bytes
	pids   int
	idle   bool // nothing runs
}

// fullLimit is a private tmpfs without room.
type fullLimit struct{ limit, detail string }
