//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

func theView() view {
	return view{
		mounts: readText("/proc/self/mountinfo"), self: readText("/proc/self/cgroup"), read: readText,
		writable: func(names ...string) error {
			for _, name := range names {
				if err := unix.Faccessat(unix.AT_FDCWD, name, unix.W_OK, unix.AT_EACCESS); err != nil {
					return &fs.PathError{Op: "write", Path: filepath.Base(name), Err: err}
				}
			}
			return nil
		},
		others: func(dir string) []int {
			pids := processes(dir)
			return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() })
		},
	}
}

// processes lists those of a cgroup. One that this pid namespace does not have is 0.
func processes(dir string) (pids []int) {
	for _, word := range strings.Fields(readText(dir + "/cgroup.procs")) {
		pid, _ := strconv.Atoi(word) // the kernel writes numbers
		pids = append(pids, pid)
	}
	return pids
}

// A Parent is a prepared Place. Its methods may be called concurrently.
type Parent struct {
	dir   string
	made  atomic.Int64
	stem  string // of the names of what is made
	keep  bool
	ahead chan *Group // nil until the second is wanted, and without keep

	mu       sync.Mutex
	closed   bool
	wanted   int
	on       []string // controllers
	removing sync.WaitGroup
}

// Open prepares the place: it moves this process out of the way, and removes
// what killed processes have left there. Moving takes some milliseconds, in
// which the kernel waits for all its CPUs. This process stays where it was moved
// to. With ahead, some cgroups are kept ready from the second on.
func (p Place) Open(ahead bool) (*Parent, error) {
	stem, err := stemOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	if p.Leave {
		host := filepath.Join(p.Dir, hostPrefix+strings.TrimPrefix(stem, groupPrefix))
		if err := os.Mkdir(host, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := write(host+"/cgroup.procs", "0"); err != nil {
			return nil, err
		}
	}
	parent := &Parent{dir: p.Dir, stem: stem, keep: ahead, on: strings.Fields(readText(p.Dir + "/cgroup.subtree_control"))}
	parent.removing.Go(func() { sweep(p.Dir, stem) })
	return parent, nil
}

// stemOf is how the names of what a process makes begin.
func stemOf(pid int) (string, error) {
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return "", &fs.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err}
	}
	return fmt.Sprintf("%s%d-%d-%s", groupPrefix, ns.Ino, pid, startOf(pid)), nil
}

// startOf is when a process started, in ticks since the boot; "" when there is
// none of that number.
func startOf(pid int) string {
	stat := readText(fmt.Sprintf("/proc/%d/stat", pid))
	// Behind the name, which may have anything in it (proc_pid_stat(5)).
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// sweep removes what processes have left that are no more. Whether one of
// another pid namespace is, cannot be told.
func sweep(dir, stem string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // nothing was left that can be seen
	}
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && abandoned(strings.Replace(name, hostPrefix, groupPrefix, 1), stem, startOf) {
			_ = write(filepath.Join(dir, name, "cgroup.kill"), "1") // empty already is as good
			_ = os.Remove(filepath.Join(dir, name))                 // the next sweep finds it again
		}
	}
}

// A Group is the cgroup of one sandbox. Its methods may be called concurrently,
// but for Close, which comes last.
type Group struct {
	parent      *Parent
	path        string
	dir         *os.File
	controllers []string
	events      *os.File // memory.events.local; nil: no limit to memory
	limit       *os.File // memory.max, held so that no want of descriptors keeps it from being set again
}

// kept is how many are made ahead: a burst of starts empties it, and each is
// some tens of KiB of kernel memory.
const kept = 2

// New makes a cgroup, after it has turned on the controllers that it needs and
// no others.
func (p *Parent) New(s Settings) (*Group, error) {
	g, err := p.take(s.Controllers())
	if err != nil {
		return nil, err
	}
	g.controllers = s.Controllers()
	for _, f := range s.files() {
		if err := g.write(f.name, f.value); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	if s.Memory > 0 {
		if g.events, err = openPolled(g.path + "/memory.events.local"); err != nil {
			return nil, errors.Join(err, g.Close())
		}
		if g.limit, err = os.OpenFile(g.path+"/memory.max", os.O_WRONLY, 0); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

func (p *Parent) take(controllers []string) (*Group, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, os.ErrClosed
	}
	for _, c := range controllers {
		if slices.Contains(p.on, c) {
			continue
		}
		// One at a time: a list fails whole, and does not say for which.
		if err := write(p.dir+"/cgroup.subtree_control", "+"+c); err != nil {
			return nil, err
		}
		p.on = append(p.on, c)
	}
	select {
	case g := <-p.ahead: // blocks for ever when nil, so the default is taken
		p.removing.Go(p.refill)
		return g, nil
	default:
	}
	if p.wanted++; p.keep && p.wanted == 2 {
		p.ahead = make(chan *Group, kept)
		p.removing.Go(p.refill)
	}
	return p.make()
}

// refill makes as many as there is room for.
func (p *Parent) refill() {
	for len(p.ahead) < kept {
		g, err := p.make()
		if err != nil {
			return // New meets the same, and reports it
		}
		p.mu.Lock()
		full := p.closed
		if !full {
			select {
			case p.ahead <- g:
			default:
				full = true
			}
		}
		p.mu.Unlock()
		if full {
			_ = g.remove() // empty
			return
		}
	}
}

func (p *Parent) make() (*Group, error) {
	g := &Group{parent: p}
	for {
		g.path = fmt.Sprintf("%s/%s-%d", p.dir, p.stem, p.made.Add(1))
		err := os.Mkdir(g.path, 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) { // another Parent's of this process
			return nil, err
		}
	}
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: g.path, Err: err}, os.Remove(g.path))
	}
	g.dir = os.NewFile(uintptr(fd), g.path)
	return g, nil
}

// Close removes what was made ahead, and waits until all that is being removed
// is gone. Groups that are not closed stay.
func (p *Parent) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var errs []error
	for p.ahead != nil && len(p.ahead) > 0 {
		errs = append(errs, (<-p.ahead).remove())
	}
	p.removing.Wait()
	return errors.Join(errs...)
}

// Dir is its directory, for CLONE_INTO_CGROUP.
func (g *Group) Dir() *os.File { return g.dir }

// Kill kills every process in it, also those that are being forked.
func (g *Group) Kill() error { return g.write("cgroup.kill", "1") }

// Unthrottle takes the limit to CPUs away, so that what has been killed can end: a
// process that is out of its time waits for more before it goes.
func (g *Group) Unthrottle() {
	if slices.Contains(g.controllers, "cpu") {
		_ = g.write("cpu.max", "max") // it takes longer without
	}
}

// Stat reads what it has used, as far as the controllers of its settings tell.
func (g *Group) Stat() Stat {
	return stat(g.controllers, func(name string) string { return readText(g.path + "/" + name) })
}

// SetMemory changes the limit to its memory, which it has had one of; 0 is none.
// When the group has more than it may, the kernel kills, before this returns.
func (g *Group) SetMemory(limit int64) error {
	value := "max"
	if limit > 0 {
		value = strconv.FormatInt(limit, 10)
	}
	_, err := g.limit.WriteString(value)
	return err
}

// Short returns true when the kernel has killed a process for want of memory, or
// slowed one down, since before, and false when the group is closed. Without a
// limit to its memory it returns false at once.
func (g *Group) Short(before Events) bool {
	if g.events == nil {
		return false
	}
	conn, err := g.events.SyscallConn()
	if err != nil {
		return false
	}
	found := false
	// The poller wakes at each change of the file (kernfs_notify).
	err = conn.Read(func(fd uintptr) bool {
		var buf [512]byte
		n, err := unix.Pread(int(fd), buf[:], 0)
		now := fields(string(buf[:max(n, 0)]))
		found = err == nil && (now["oom_kill"] > before.OOMKill || now["high"] > before.High)
		return found || err != nil
	})
	return found && err == nil
}

// Close removes it, in the background, when its last process has ended, which
// it kills. The group is not used afterwards.
func (g *Group) Close() error {
	var err error
	for _, f := range []*os.File{g.events, g.limit} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	g.parent.removing.Go(func() { _ = g.remove() }) // what cannot be removed the next sweep finds
	return err
}

// remove waits for the last process to be gone: it leaves its cgroup only after
// it can be waited for.
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

// emptied returns when no process is left.
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

// write does it in one call, as the kernel wants it, and does not make a file.
func write(name, value string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// openPolled opens a file whose changes the runtime's poller reports.
func openPolled(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
