//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/sample"
)

// cgroups is where an engine makes those of its sandboxes. The place is prepared
// when the first is wanted.
type cgroups struct {
	place  cgroup.Place
	ahead  bool // some are kept ready
	mu     sync.Mutex
	parent *cgroup.Parent
}

// scoped is the host for this process in a scope that systemd makes for it.
func (h *Host) scoped() (Host, error) {
	if lent() {
		return *h, nil // openMachine refuses it, and the caller's busctl is not started
	}
	if err := cgroup.Scope(context.Background()); err != nil {
		return *h, err
	}
	in := *h
	in.Cgroup = cgroup.Find()
	if within := Bytes(in.Cgroup.Memory); within > 0 {
		in.Memory = min(in.Memory, within)
	}
	return in, nil
}

// group is the cgroup of a sandbox. Commands read it after their end, so it is
// there until the last has.
type group struct {
	*cgroup.Group
	uses   uses         // by commands, from before their start until they have been measured
	counts bool         // its processes
	memory int64        // limit, 0: none
	high   bool         // there is a limit to slow down at
	over   atomic.Int64 // how often it had more memory than it may, with the limit lifted

	mu       sync.Mutex
	starting int

	sweeping sync.RWMutex
	swept    int64 // how often all in it have been killed
}

// lift takes the limit to memory away while a command is being started. Until
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
	g.uses.extend() // beside the command's own; see linuxBox.enter
	return nil
}

// limit is for when the command has called execve or is dead.
func (g *group) limit() {
	if g == nil || g.memory == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starting--; g.starting == 0 {
		_ = g.SetMemory(g.memory) // it is gone when someone has taken the controller away
	}
	g.uses.end()
}

// begin has the cgroup of a plan be made, if it has one, while the sandbox is.
// What it returns waits for it.
func (cs *cgroups) begin(p *Plan) func() (*group, error) {
	if !p.grouped() {
		return func() (*group, error) { return nil, nil }
	}
	type made struct {
		g   *group
		err error
	}
	done := make(chan made, 1)
	// This process moves before it has children: one that stayed behind would keep
	// controllers from being turned on.
	parent, err := cs.open()
	if err != nil {
		return func() (*group, error) { return nil, cgroupError(err) }
	}
	go func() {
		g, err := parent.New(p.cgroup)
		if err != nil {
			done <- made{nil, cgroupError(err)}
			return
		}
		done <- made{&group{Group: g, counts: p.cgroup.Pids > 0, memory: p.cgroup.Memory, high: p.cgroup.MemoryHigh > 0}, nil}
	}()
	return func() (*group, error) {
		m := <-done
		return m.g, m.err
	}
}

// open prepares the place.
func (cs *cgroups) open() (*cgroup.Parent, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.parent == nil {
		parent, err := cs.place.Open(cs.ahead)
		if err != nil {
			return nil, err
		}
		cs.parent = parent
	}
	return cs.parent, nil
}

// cgroupError says what to do about the errors that a user can do something about.
func cgroupError(err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return &UnsupportedError{Feature: "a cgroup with limits", Err: err, Remedy: "other processes are in this process's cgroup: start it in one of its own"}
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
	g.uses.close()
	return g.Close()
}

// enter and leave are around all that a command reads of its cgroup. A sandbox
// that is closing admits none: its cgroup may be gone.
func (b *linuxBox) enter() error {
	if b.group != nil && !b.group.uses.begin() {
		return ErrClosed
	}
	return nil
}

func (b *linuxBox) leave() {
	if b.group != nil {
		b.group.uses.end()
	}
}

// guard begins to look after a sandbox's limits.
func (b *linuxBox) guard(s *Sandbox) {
	switch {
	case b.group != nil:
		go b.mindMemory(s)
	case s.plan.watch.anything():
		go s.watchdog(s.plan.watch)
	}
}

// mindMemory kills the rest when the kernel has killed one process for want of
// memory, until the sandbox ends. memory.oom.group would do that, but must not be
// set; see launch.Program.StartInCgroup.
func (b *linuxBox) mindMemory(s *Sandbox) {
	var seen cgroup.Events
	for b.group.Short(seen) {
		now := b.group.Stat()
		over := now.Memory > b.group.memory+b.group.memory/16
		if over {
			b.group.over.Add(1)
		}
		if over || now.Events.OOMKill > seen.OOMKill {
			b.group.sweep()
			if !s.plan.Spec.Keep {
				s.kill()
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

// sweep kills all. Whoever measures before and after is told so, and of those that
// started since no one is killed.
func (g *group) sweep() {
	g.sweeping.Lock()
	defer g.sweeping.Unlock()
	_ = g.Kill() // gone already is as good
	g.swept++
}

// measure is what the sandbox has used so far.
func (b *linuxBox) measure() reading {
	if b.group == nil {
		return b.sampled.reading()
	}
	s := b.group.Stat()
	over := b.group.over.Load()
	b.group.sweeping.RLock()
	defer b.group.sweeping.RUnlock()
	if !b.group.high {
		s.Events.High = 0
	}
	return reading{
		by: byCgroup, empty: b.group.counts && s.Pids == 0, cpu: s.CPU, memory: Bytes(s.PeakMemory), pids: int(s.PeakPids), read: Bytes(s.Read), written: Bytes(s.Written),
		ownOOM: s.Events.OOM+over > 0, oom: s.Events.OOM + over, oomKill: s.Events.OOMKill + over, swept: b.group.swept, reclaimed: s.Events.Max, high: s.Events.High, forkFail: s.Events.ForkFail, throttled: s.Throttled,
	}
}

// full lists the private tmpfs that are full at present. Once pid 1 has ended
// nothing can be said.
func (b *linuxBox) full() (list []fullLimit) {
	if b.bare != nil {
		return nil
	}
	for _, dir := range []string{"/tmp", "/workspace", "/dev/shm"} {
		var st unix.Statfs_t
		// Through pid 1, whose root a guest cannot change.
		if unix.Statfs(fmt.Sprintf("/proc/%d/root%s", b.pid, dir), &st) != nil || st.Type != unix.TMPFS_MAGIC {
			continue
		}
		if st.Blocks > 0 && st.Bfree == 0 {
			list = append(list, fullLimit{"tmp", dir + " is full"})
		}
		if st.Files > 0 && st.Ffree == 0 {
			list = append(list, fullLimit{"tmpfiles", dir + " has no file left"})
		}
	}
	if sendSignal(b.pidfd, 0) != nil {
		return nil // its number may have been another's meanwhile
	}
	return list
}

// oomKills is how many processes the kernel has killed for want of memory since
// it booted.
func oomKills() int64 {
	return sample.OOMKills()
}
