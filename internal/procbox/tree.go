//go:build darwin || (linux && (amd64 || arm64))

package procbox

import (
	"os"
	"syscall"
)

// proc is a process as the system's table has it.
type proc struct {
	pid, parent, group int
	start              int64 // tells it from one that had the number before
	dead               bool  // and not reaped
}

// tree is a command and what has descended from it, as far as has been seen: a
// child of one, or a member of a group that one was in, is one. Under box.mu.
type tree struct {
	root  int
	whole bool         // root has not been reaped, so its number is its own
	procs map[int]proc // by pid
	// led are the process groups that have been seen in it. A group lasts, and its
	// number is not given to another, as long as it has members, even after its leader
	// has ended.
	led map[int]bool
}

func newTree(root int) *tree {
	return &tree{root: root, whole: true, procs: make(map[int]proc), led: map[int]bool{root: true}}
}

// look brings it up to date, and returns the pids that are new.
func (t *tree) look(all map[int]proc) (added []int) {
	for pid, p := range t.procs {
		if now, ok := all[pid]; !ok || now.start != p.start {
			delete(t.procs, pid)
		} else {
			t.procs[pid] = now
		}
	}
	if root, ok := all[t.root]; ok && t.whole {
		t.procs[t.root] = root
	}
	t.forget(all)
	for more := true; more; {
		more = false
		for pid, p := range all {
			_, known := t.procs[pid]
			_, child := t.procs[p.parent]
			if !known && (child || t.led[p.group]) {
				t.procs[pid], t.led[p.group] = p, true
				added, more = append(added, pid), true
			}
		}
	}
	for _, p := range t.procs { // who was known may have moved
		t.led[p.group] = true
	}
	return added
}

// forget leaves out the groups that have ended: they have no members, or a leader
// that is not of this tree and has made another group of that number.
func (t *tree) forget(all map[int]proc) {
	members := make(map[int]bool)
	for _, p := range all {
		members[p.group] = true
	}
	for g := range t.led {
		_, led := all[g]
		_, known := t.procs[g]
		if !members[g] || led && !known {
			delete(t.led, g)
		}
	}
}

// reapOrphans reaps the children that a guest has given this process (CLONE_PARENT).
func (t *tree) reapOrphans() {
	for pid, p := range t.procs {
		if p.dead && p.parent == os.Getpid() && pid != t.root {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // another may have done it
		}
	}
}

// reaped is for when its command has been.
func (t *tree) reaped() {
	t.whole = false
	delete(t.procs, t.root)
}

func (t *tree) gone() bool { return !t.whole && len(t.procs) == 0 }

// living counts those that are not dead.
func (t *tree) living() (n int) {
	for _, p := range t.procs {
		if !p.dead {
			n++
		}
	}
	return n
}

// kill kills the processes that have just been looked at, and those that have joined
// their groups since. It reports whether something can be killed, or is gone already.
//
// The root comes first: a shell that sees its child killed would exit with 137 by
// itself before it is killed, and its end would not be the kill's.
func (t *tree) kill() (some bool) {
	kill := func(p proc) {
		if !p.dead && syscall.Kill(p.pid, syscall.SIGKILL) != syscall.EPERM {
			some = true
		}
	}
	if root, ok := t.procs[t.root]; ok {
		kill(root)
	}
	for _, p := range t.procs {
		kill(p)
	}
	for g := range t.led {
		_ = syscall.Kill(-g, syscall.SIGKILL) // what is left is looked at again
	}
	return some
}
