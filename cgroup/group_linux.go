package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// A Group is the cgroup of one sandbox. Its methods may be called concurrently,
// except that none may be called after Close.
type Group struct {
	parent      *Parent
	path        string
	dir         *os.File
	controllers []string
	events      *os.File // memory.events.local; nil without a memory limit
	limit       *os.File // memory.max, kept open so that setting it cannot fail with EMFILE
	closing     sync.Once
}

// Dir returns the cgroup's directory, for CLONE_INTO_CGROUP. It belongs to the Group
// and is closed with it.
func (g *Group) Dir() *os.File { return g.dir }

// Kill kills every process in the cgroup, including those being forked.
func (g *Group) Kill() error { return g.write("cgroup.kill", "1") }

// Unthrottle removes the CPU limit so that killed processes end promptly: a process
// that has used up its share waits for the next period before it exits.
func (g *Group) Unthrottle() {
	if slices.Contains(g.controllers, "cpu") {
		_ = g.write("cpu.max", "max") // otherwise the end only takes longer
	}
}

// Stat reads the usage so far. It is zero where the controllers of the cgroup's
// settings do not report it.
func (g *Group) Stat() Stat {
	return stat(g.controllers, func(name string) string { return readText(g.path + "/" + name) })
}

// SetMemory changes the memory limit, in bytes, of a Group created with one; 0 removes
// it. If the cgroup uses more than the new limit, the kernel kills before SetMemory
// returns.
func (g *Group) SetMemory(limit int64) error {
	value := "max"
	if limit > 0 {
		value = strconv.FormatInt(limit, 10)
	}
	_, err := g.limit.WriteString(value)
	return err
}

// Short blocks until the kernel has OOM-killed or slowed down a process since before,
// and then returns true. It returns false once the Group is closed, and at once if the
// Group has no memory limit.
func (g *Group) Short(before Events) bool {
	if g.events == nil {
		return false
	}
	conn, err := g.events.SyscallConn()
	if err != nil {
		return false
	}
	found := false
	// The poller wakes up at each change of the file (kernfs_notify).
	err = conn.Read(func(fd uintptr) bool {
		var buf [512]byte
		n, err := unix.Pread(int(fd), buf[:], 0)
		now := fields(string(buf[:max(n, 0)]))
		found = err == nil && (now["oom_kill"] > before.OOMKill || now["high"] > before.High)
		return found || err != nil
	})
	return found && err == nil
}

// Close kills the cgroup's processes and removes it, in the background unless the
// Parent is closed. Calling Close again does nothing.
func (g *Group) Close() (err error) {
	g.closing.Do(func() {
		for _, f := range []*os.File{g.events, g.limit} {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		g.parent.background(func() { _ = g.remove() }) // on failure, a later process's Open tries again
	})
	return err
}

// remove waits until the last process is gone: a process leaves its cgroup only after
// it has become a zombie.
func (g *Group) remove() error {
	err := os.Remove(g.path)
	if errors.Is(err, unix.EBUSY) {
		err = errors.Join(g.Kill(), g.emptied())
		if err == nil {
			err = os.Remove(g.path)
		}
	}
	return errors.Join(err, g.dir.Close())
}

// emptied blocks until no process is left.
func (g *Group) emptied() error {
	f, err := openPolled(g.path + "/cgroup.events")
	if err != nil {
		return err
	}
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		var buf [512]byte
		n, err := unix.Pread(int(fd), buf[:], 0)
		return err != nil || fields(string(buf[:max(n, 0)]))["populated"] == 0
	})
}

func (g *Group) write(name, value string) error { return write(g.path+"/"+name, value) }

// write writes value in one call, as the kernel requires, and does not create a file.
func write(name, value string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// openPolled opens a file so that the runtime's poller reports its changes.
func openPolled(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
