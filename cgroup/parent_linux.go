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

// A Parent is a prepared Place. Its methods may be called concurrently.
type Parent struct {
	dir   string
	made  atomic.Int64
	stem  string // how the names of its cgroups begin
	keep  bool
	ahead chan *Group // cgroups kept ready; nil until the second New, and without keep

	mu     sync.Mutex
	closed bool
	wanted int
	on     []string // controllers that are turned on
	// running counts background work. It grows only under mu and while not closed,
	// so that Close does not wait for it while it grows from zero.
	running sync.WaitGroup
}

// Open prepares the place and removes cgroups that killed processes have left there.
//
// If p.Leave is set, it moves the calling process with all its threads, and so the
// program that embeds this package, into a child cgroup named tegmen-host-…, and Close
// does not move it back. The move takes some milliseconds, in which the kernel waits
// for all its CPUs.
//
// With ahead, two cgroups are kept ready once New has been called twice. The caller
// closes the Parent.
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
	on := strings.Fields(readText(p.Dir + "/cgroup.subtree_control"))
	parent := &Parent{dir: p.Dir, stem: stem, keep: ahead, on: on}
	parent.running.Go(func() { removeAbandoned(p.Dir, stem) })
	return parent, nil
}

// background runs f and makes Close wait for it. If the Parent is closed already, it
// returns when f has.
func (p *Parent) background(f func()) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		f()
		return
	}
	p.running.Go(f)
	p.mu.Unlock()
}

// stemOf returns how the names of a process's cgroups begin.
func stemOf(pid int) (string, error) {
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return "", &fs.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err}
	}
	return fmt.Sprintf("%s%d-%d-%s", groupPrefix, ns.Ino, pid, startOf(pid)), nil
}

// startOf returns when a process started, in ticks since boot, or "" if the pid is
// unused.
func startOf(pid int) string {
	stat := readText(fmt.Sprintf("/proc/%d/stat", pid))
	// After the command name, which may contain anything (proc_pid_stat(5)).
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// removeAbandoned kills and removes cgroups of processes that have ended. It skips
// those of other pid namespaces, whose processes it cannot look up.
func removeAbandoned(dir, stem string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // nothing visible to remove
	}
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && abandoned(strings.Replace(name, hostPrefix, groupPrefix, 1), stem, startOf) {
			_ = write(filepath.Join(dir, name, "cgroup.kill"), "1") // fails if it is gone already
			_ = os.Remove(filepath.Join(dir, name))                 // the next Open tries again
		}
	}
}

// abandoned reports whether a cgroup's name is that of a process that has ended.
func abandoned(name, stem string, startOf func(pid int) string) bool {
	mine, theirs := strings.Split(stem, "-"), strings.Split(name, "-")
	if len(theirs) < 4 || theirs[0] != mine[0] || theirs[1] != mine[1] {
		return false
	}
	pid, err := strconv.Atoi(theirs[2])
	return err == nil && pid > 0 && startOf(pid) != theirs[3]
}

// kept is how many cgroups are kept ready. A burst of starts uses them up, and each
// costs some tens of KiB of kernel memory.
const kept = 2

// New creates a cgroup, after turning on the controllers that it needs and no others.
// It returns os.ErrClosed if the Parent is closed. The caller closes the Group.
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
		// One at a time: a list fails as a whole without naming the culprit.
		if err := write(p.dir+"/cgroup.subtree_control", "+"+c); err != nil {
			return nil, err
		}
		p.on = append(p.on, c)
	}
	select {
	case g := <-p.ahead: // never ready if nil
		p.running.Go(p.refill)
		return g, nil
	default:
	}
	if p.wanted++; p.keep && p.wanted == 2 {
		p.ahead = make(chan *Group, kept)
		p.running.Go(p.refill)
	}
	return p.make()
}

// refill creates cgroups until enough are ready.
func (p *Parent) refill() {
	for len(p.ahead) < kept {
		g, err := p.make()
		if err != nil {
			return // New fails in the same way and reports it
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
		if !errors.Is(err, fs.ErrExist) { // taken by another Parent of this process
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

// Close removes the cgroups kept ready and waits until those of closed Groups are
// removed. Groups that are still open stay valid; their Close then waits itself. It is
// safe to call Close twice.
func (p *Parent) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var errs []error
	for {
		select {
		case g := <-p.ahead: // never ready if nil
			errs = append(errs, g.remove())
			continue
		default:
		}
		p.running.Wait()
		return errors.Join(errs...)
	}
}
