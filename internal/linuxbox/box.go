//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/handoff"
	"github.com/tegmen-dev/tegmen/internal/holdback"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/sample"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// nsBox is a sandbox with namespaces: its pid 1.
type nsBox struct {
	m            *Machine
	config       *box.Config
	spawner      *launch.Spawner
	pid          int
	pidfd        *os.File
	timing       box.Timing
	placeholders *placeholders   // nil: none
	watch        *holdback.Watch // nil: nothing is watched for
	group        *group          // nil: it has no cgroup
	sampled      sampled         // without a cgroup
	first        firstCommand
	activity     box.Activity

	ending sync.Once
	over   chan struct{} // closed when nothing is left of it
}

// Kill ends everything in the sandbox.
func (b *nsBox) Kill() {
	_ = sendSignal(b.pidfd, unix.SIGKILL) // gone already is as good
	b.ending.Do(func() {
		if b.group != nil {
			b.group.Unthrottle()
		}
		go b.reapOrphans()
	})
}

// dying reports whether pid 1 is exiting, that is, waiting for the rest of its
// namespace to be reaped.
func (b *nsBox) dying() bool {
	const exiting = 4 // PF_EXITING, in the ninth field (proc_pid_stat(5))
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(b.pid) + "/stat")
	if err != nil {
		return true
	}
	// The second field is a name in parentheses, and may have some itself.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&exiting != 0
}

// Wait returns when nothing is left of the sandbox. Commands in it are waited
// for by others first: pid 1 ends after them.
func (b *nsBox) Wait() error {
	_, _, err := waitFor(b.pidfd, b.pid, b.Kill)
	close(b.over)
	b.sampled.close()
	return errors.Join(err, b.pidfd.Close(), b.watch.Close(), b.placeholders.close(), b.group.close())
}

// Held implements box.Box.
func (b *nsBox) Held() (held []box.Held, err error) {
	found, err := b.watch.Settle()
	for _, f := range found {
		held = append(held, box.Held(f))
	}
	return held, err
}

// hold calls f with the descriptor of pid 1, which stays what it is meanwhile:
// were it closed, its number could become another sandbox's.
func (b *nsBox) hold(f func(initFD int) error) error {
	conn, err := b.pidfd.SyscallConn()
	if err != nil {
		return box.ErrClosed
	}
	if conn.Control(func(fd uintptr) { err = f(int(fd)) }) != nil {
		return box.ErrClosed
	}
	return err
}

// Terminal opens a pseudo-terminal of the sandbox: the master, and the end that
// the command gets.
func (b *nsBox) Terminal(w box.WindowSize) (master, slave *os.File, err error) {
	var fd int
	err = b.hold(func(initFD int) error {
		p, flags, slot := setup.Terminal(initFD)
		err := b.spawner.Run(p, flags)
		fd = slot.Int()
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return handoff.TerminalOf(fd, w)
}

// Watch reports limits that are exceeded. A cgroup tells by itself when memory runs
// out; otherwise a watchdog looks from time to time.
func (b *nsBox) Watch() <-chan box.Exceeded {
	out := make(chan box.Exceeded)
	var watchers sync.WaitGroup
	if b.group != nil {
		watchers.Go(func() { b.mindMemory(out) })
	}
	if b.config.Watch.Any() { // what a cgroup without that controller leaves as well
		watchers.Go(func() { box.Watchdog(out, b.over, &b.activity, b.config.Watch, b.firstLook, b.look) })
	}
	if storm := b.watch.Storm(); storm != nil {
		watchers.Go(func() {
			select {
			case <-b.over:
			case <-storm:
				select {
				case <-b.over:
				case out <- box.Exceeded{What: box.Protected, Again: !b.config.KillAlone}:
				}
			}
		})
	}
	go func() {
		watchers.Wait()
		close(out)
	}()
	return out
}

// full lists the private tmpfs that are full at present. Once pid 1 has ended
// nothing can be said.
func (b *nsBox) full() (list []box.Full) {
	for _, dir := range []string{"/tmp", "/workspace", "/dev/shm"} {
		var st unix.Statfs_t
		if unix.Statfs(b.rootDir()+dir, &st) != nil || st.Type != unix.TMPFS_MAGIC {
			continue
		}
		if st.Blocks > 0 && st.Bfree == 0 {
			list = append(list, box.Full{Path: dir})
		}
		if st.Files > 0 && st.Ffree == 0 {
			list = append(list, box.Full{Path: dir, Files: true})
		}
	}
	for _, n := range b.config.Table {
		if n.Kind == rootfs.Overlay && n.Upper.Path == "" && noRoom(b.rootDir(), n.Path) {
			list = append(list, box.Full{Path: n.Path, Workspace: b.config.Overlay != nil && n.Path != "/"})
		}
	}
	if sendSignal(b.pidfd, 0) != nil {
		return nil // its number may have been another's meanwhile
	}
	return list
}

// sharedMemory is the resident System V shared memory of the sandbox. What is
// attached to a process has been counted with that already, so that is counted
// twice; what is not would not be counted at all.
func (b *nsBox) sharedMemory() (bytes int64) {
	_ = b.hold(func(initFD int) error {
		p, flags, info := setup.SharedMemory(initFD)
		err := b.spawner.Run(p, flags)
		if err == nil {
			bytes = int64(info[2]) * int64(os.Getpagesize())
		}
		return err // the sandbox has ended, or the host lacks something; the next time is soon
	})
	return bytes
}

func (b *nsBox) firstLook() time.Duration {
	return sample.Next(sample.Sample{}, limits(b.config.Watch, b.m.host.CPUs))
}

// look is the watchdog's: what there is now, and when to look again. Of a sandbox
// that cannot be looked at it says that it has too much.
func (b *nsBox) look() (box.Look, time.Duration) {
	w := b.config.Watch
	if !b.sampled.opened {
		// Not before: what ends sooner shall not pay for it. A guest cannot change
		// what pid 1 sees.
		b.sampled.opened = true
		b.sampled.add(sample.Open(b.pid, w.OnDisk...))
	}
	now, next, err := b.sampled.look(w, b.m.host.CPUs, b.sharedMemory)
	if err != nil && b.dying() {
		return box.Look{}, sample.Shortest // no limit was reached: it is being closed
	}
	return now, next
}
