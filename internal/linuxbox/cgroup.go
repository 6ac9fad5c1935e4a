//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
)

// cgroups is where an engine makes those of its sandboxes. The place is prepared
// when the first is wanted.
type cgroups struct {
	place  cgroup.Place
	ahead  bool // some are kept ready
	mu     sync.Mutex
	parent *cgroup.Parent
}

// Scope returns the host after systemd has moved this process to a scope of its
// own, in which it can make cgroups.
func Scope(h box.Host) (box.Host, error) {
	if privilegedExecutable() {
		return h, nil // Open refuses it, and the caller's busctl is not started
	}
	if err := cgroup.Scope(context.Background()); err != nil {
		return h, err
	}
	h.Cgroup = cgroup.Find()
	if within := h.Cgroup.Memory; within > 0 {
		h.MemoryBytes = min(h.MemoryBytes, within)
	}
	return h, nil
}

// group is the cgroup of a sandbox. Commands read it after their end, so it is
// there until the last has.
type group struct {
	*cgroup.Group
	uses   box.Uses     // by commands, from before their start until they have been measured
	counts bool         // its processes
	memory int64        // limit, 0: none
	high   bool         // there is a limit to slow down at
	over   atomic.Int64 // how often it had more memory than it may, with the limit lifted

	mu       sync.Mutex
	starting int

	sweeping sync.RWMutex
	swept    int64 // how often all in it have been killed
}

// lift takes memory.max away while a command is being started. Until
// its execve a command shares this process's memory, and the kernel kills all
// that share the memory of what it kills: it spares a process whose parent waits
// for its execve, but not one that is through with waiting and has the old memory
// still (exec_mm_release in exec_mmap of fs/exec.c, exit_mm of kernel/exit.c). So
// it may not kill here at all meanwhile. memory.high, which slows down and never
// kills, is at the limit then, and mindMemory kills.
func (g *group) lift() error {
	if g == nil || g.memory == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starting == 0 {
		if err := g.SetMemory(0); err != nil {
			return err
		}
	}
	g.starting++
	g.uses.Extend() // beside the command's own; see nsBox.enter
	return nil
}

// limit restores memory.max after the command has called execve or died.
func (g *group) limit() {
	if g == nil || g.memory == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starting--; g.starting == 0 {
		_ = g.SetMemory(g.memory) // it is gone when someone has taken the controller away
	}
	g.uses.End()
}

// make starts to make the sandbox's cgroup, if it has one; prepare came first. What it
// returns waits until that is done.
func (cs *cgroups) make(c *box.Config) func() (*group, error) {
	if len(c.Cgroup.Controllers()) == 0 {
		return func() (*group, error) { return nil, nil }
	}
	type made struct {
		g   *group
		err error
	}
	done := make(chan made, 1)
	go func() {
		g, err := cs.parent.New(c.Cgroup)
		if err != nil {
			done <- made{nil, cgroupError(err)}
			return
		}
		done <- made{&group{Group: g, counts: c.Cgroup.Pids > 0, memory: c.Cgroup.Memory, high: c.Cgroup.MemoryHigh > 0}, nil}
	}()
	return func() (*group, error) {
		m := <-done
		return m.g, m.err
	}
}

// prepare opens the place if the sandbox needs it. This process may have to leave the
// place, before it has children of any kind: one that stayed behind, even the janitor
// of the placeholders, would keep controllers from being turned on.
func (cs *cgroups) prepare(c *box.Config) error {
	if len(c.Cgroup.Controllers()) == 0 {
		return nil
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.parent != nil {
		return nil
	}
	parent, err := cs.place.Open(cs.ahead)
	if err != nil {
		return cgroupError(err)
	}
	cs.parent = parent
	return nil
}

// cgroupError says what a user can do about an error.
func cgroupError(err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return &launch.UnsupportedError{Feature: "a cgroup with limits", Err: err,
			Remedy: "other processes are in this process's cgroup: start it in one of its own"}
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("no more cgroups may be made here (cgroup.max.descendants): %w", err)
	}
	return err
}

func (cs *cgroups) close() error {
	if cs.parent == nil {
		return nil
	}
	return cs.parent.Close()
}

func (g *group) close() error {
	if g == nil {
		return nil
	}
	g.uses.Close()
	return g.Close()
}

// enter counts a command in, and returns what the sandbox has used before it. A
// sandbox that is closing admits none: its cgroup may be gone.
func (b *nsBox) enter() (box.Usage, error) {
	if b.group != nil && !b.group.uses.Begin() {
		return box.Usage{}, box.ErrClosed
	}
	return b.activity.Enter(b.Usage), nil
}

// leave counts it out. now is what the sandbox had used at that moment.
func (b *nsBox) leave(now box.Usage, at box.Moment) {
	b.activity.Leave(now, at)
	if b.group != nil {
		b.group.uses.End()
	}
}

// mindMemory kills the rest once the kernel has killed one process for want of
// memory, until the sandbox ends. memory.oom.group would do that, but must not be
// set; see launch.Program.StartInCgroup.
func (b *nsBox) mindMemory(out chan<- box.Exceeded) {
	var seen cgroup.Events
	for b.group.Short(seen) {
		now := b.group.Stat()
		over := now.Memory > b.group.memory+b.group.memory/16
		if over {
			b.group.over.Add(1)
		}
		if over || now.Events.OOMKill > seen.OOMKill {
			b.group.sweep()
			select {
			case out <- box.Exceeded{What: box.Memory, Killed: true}:
			case <-b.over:
			}
		}
		seen = now.Events
		// A guest that lives at its limit, with files to be read again and again,
		// is no reason to look all the time.
		select {
		case <-time.After(10 * time.Millisecond):
		case <-b.over:
		}
	}
}

// sweep kills all. A command that starts later is not charged with that.
func (g *group) sweep() {
	g.sweeping.Lock()
	defer g.sweeping.Unlock()
	_ = g.Kill() // gone already is as good
	g.swept++
}

// Usage is what the sandbox has used so far.
func (b *nsBox) Usage() box.Usage {
	if b.group == nil {
		return b.sampled.usage()
	}
	u := b.group.usage()
	if b.config.Watch.Any() { // limits that the cgroup has no controller for
		seen := b.sampled.usage()
		u.OOM, u.ForkFail = u.OOM+seen.OOM, u.ForkFail+seen.ForkFail
	}
	return u
}

func (g *group) usage() box.Usage {
	s := g.Stat()
	over := g.over.Load()
	g.sweeping.RLock()
	defer g.sweeping.RUnlock()
	if !g.high {
		s.Events.High = 0
	}
	return box.Usage{
		By: box.ByCgroup, Empty: g.counts && s.Pids == 0,
		CPU: s.CPU, Memory: s.PeakMemory, Pids: int(s.PeakPids), Read: s.Read, Written: s.Written,
		OwnOOM: s.Events.OOM+over > 0, OOM: s.Events.OOM + over, OOMKill: s.Events.OOMKill + over,
		Swept: g.swept, Reclaimed: s.Events.Max, High: s.Events.High, ForkFail: s.Events.ForkFail, Throttled: s.Throttled,
	}
}
