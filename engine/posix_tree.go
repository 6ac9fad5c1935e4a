//go:build darwin || (linux && (amd64 || arm64))

package engine

import (
	"maps"
	"slices"
	"syscall"
)

// proc is a process as the system's table has it.
type proc struct {
	pid, parent, group int
	start              int64 // tells it from one that had the number before
	dead               bool  // and not reaped
}

// tree is a command and what has descended from it, as far as has been seen: a
// child of one, or a member of a group that one leads, is one. Under box.mu.
type tree struct {
	root  int
	whole bool         // root has not been reaped, so its number is its own
	procs map[int]proc // by pid
}

func newTree(root int) *tree { return &tree{root: root, whole: true, procs: make(map[int]proc)} }

// look brings it up to date, and returns who is new.
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
	for more := len(t.procs) > 0; more; {
		more = false
		for pid, p := range all {
			if _, known := t.procs[pid]; known {
				continue
			}
			_, child := t.procs[p.parent]
			if _, member := t.procs[p.group]; child || member {
				t.procs[pid] = p
				added, more = append(added, pid), true
			}
		}
	}
	return added
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

// groups adds the process groups in it.
func (t *tree) groups(to map[int]bool) {
	for _, p := range t.procs {
		to[p.group] = true
	}
}

// kill kills what has just been looked at.
func (t *tree) kill() {
	for _, pid := range slices.Sorted(maps.Keys(t.procs)) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
	}
	if t.whole {
		_ = syscall.Kill(-t.root, syscall.SIGKILL) // those of its group that have come since
	}
}
