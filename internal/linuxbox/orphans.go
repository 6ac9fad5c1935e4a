//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/setup"
)

// commands are the processes of an engine's sandboxes that it waits for. A
// guest can give this process other children, by CLONE_PARENT, where no filter
// keeps it from that; dead ones that nobody waits for would keep pid 1 from
// ending.
type commands struct {
	mu       sync.Mutex // for moments: a guest can hold up a start
	starting map[*setup.Entry]struct{}
	pids     map[int]struct{}
}

// begin and begun are around the start of a command.
func (c *commands) begin(e *setup.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starting == nil {
		c.starting, c.pids = make(map[*setup.Entry]struct{}), make(map[int]struct{})
	}
	c.starting[e] = struct{}{}
}

func (c *commands) begun(e *setup.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.starting, e)
	if pid := e.PID.Int(); pid > 0 {
		c.pids[pid] = struct{}{}
	}
}

// over is for one that has been waited for.
func (c *commands) over(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pids, pid)
}

// has reports whether pid is a command that is waited for, or will be: it has a
// number before it runs. c.mu is held.
func (c *commands) has(pid int) bool {
	_, known := c.pids[pid]
	for e := range c.starting {
		known = known || e.PID.Int() == pid
	}
	return known
}

// reapOrphans reaps them until the sandbox has ended. It is called when that has
// been told to, and only then does something when that takes long.
//
// Which namespace an orphan died in cannot be asked for: /proc/PID/ns of what has
// no memory any more is closed to its own user on newer kernels. So an orphan is a
// process inside a sandbox that is not of this engine's, and that no other
// engine of this process has waited for within a second of its end.
func (b *nsBox) reapOrphans() {
	const patience = time.Second
	own := len(fieldsOf("/proc/self/status", "NSpid:")) // it has a number in each namespace it is in
	dead := make(map[int]bool)
	for {
		select {
		case <-b.over:
			return
		case <-time.After(patience):
		}
		b.m.commands.mu.Lock()
		seen := make(map[int]bool)
		for _, pid := range children() {
			if b.m.commands.has(pid) || !isOrphan(pid, own) {
				continue
			}
			if dead[pid] {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil) // another may have been quicker
				continue
			}
			seen[pid] = true
		}
		dead = seen
		b.m.commands.mu.Unlock()
	}
}

// isOrphan reports whether pid is a dead process in a pid namespace below this
// one, and not the first in there.
func isOrphan(pid, own int) bool {
	file := "/proc/" + strconv.Itoa(pid) + "/status"
	inside, state := fieldsOf(file, "NSpid:"), fieldsOf(file, "State:")
	return len(inside) > own && inside[own] != "1" && len(state) > 0 && state[0] == "Z"
}

// children lists those of this process, by whichever thread they were started.
func children() (pids []int) {
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil
	}
	for _, f := range files {
		text, _ := os.ReadFile(f) // a thread that has ended has none
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
