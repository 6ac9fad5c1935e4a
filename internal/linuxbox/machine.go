//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/privatedir"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Options say how a Machine starts sandboxes.
type Options struct {
	NoTemplates   bool // every sandbox is made from nothing
	CallersThread bool // processes are children of the thread that calls
}

// Machine starts sandboxes in namespaces. It holds what they all use.
type Machine struct {
	host      box.Host
	options   Options
	templates *templates // nil: every sandbox is made from nothing
	clock     launch.Clock

	signals       []unix.Signal // to reset in commands
	proc          *os.File      // the host's /proc, O_PATH
	pause         *os.File      // image of pid 1
	gate          *os.File      // image that commands execute first
	lifelineRead  *os.File      // pid 1 of every sandbox holds it
	lifelineWrite *os.File      // nobody else has it: at the end of this process, pid 1 reads the end of file
	null          *os.File

	cgroups  cgroups
	commands commands
	mu       sync.Mutex
	spawners map[launch.Identity]*launch.Spawner
}

// Open prepares a machine, and starts nothing. The caller closes it.
func Open(h box.Host, o Options) (_ *Machine, err error) {
	if privilegedExecutable() {
		return nil, box.Invalid("setuid, setgid or with capabilities of its own: " +
			"the caller would get at what is not the caller's; take these off the file")
	}
	m := &Machine{
		host: h, options: o, cgroups: cgroups{place: h.Cgroup, ahead: !o.NoTemplates},
		clock: launch.NewClock(), signals: launch.IgnorableSignals(), spawners: make(map[launch.Identity]*launch.Spawner),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if m.proc, err = openPath("/proc"); err != nil {
		return nil, err
	}
	if m.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if m.pause, err = launch.Pause(); err != nil {
		return nil, err
	}
	if m.gate, err = launch.Gate(); err != nil {
		return nil, err
	}
	var pipe [2]int
	if err = unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	m.lifelineRead, m.lifelineWrite = os.NewFile(uintptr(pipe[0]), "lifeline"), os.NewFile(uintptr(pipe[1]), "lifeline")
	if !o.NoTemplates {
		m.templates = &templates{m: m, byKey: make(map[string]*template)}
	}
	return m, nil
}

func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Close releases everything. The sandboxes have ended.
func (m *Machine) Close() error {
	var errs []error
	if m.templates != nil {
		errs = append(errs, m.templates.close())
	}
	errs = append(errs, m.cgroups.close())
	m.mu.Lock()
	for _, s := range m.spawners {
		s.Close()
	}
	m.mu.Unlock()
	for _, f := range []*os.File{m.proc, m.pause, m.gate, m.lifelineRead, m.lifelineWrite, m.null} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// owner is who guests are on the host.
func (m *Machine) owner(c *box.Config) privatedir.Owner {
	return privatedir.Owner{IDs: c.IDs, Become: m.host.Become}
}

// spawner returns the thread that starts processes as the sandbox's host user.
func (m *Machine) spawner(id ns.IDs) (*launch.Spawner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := launch.Identity{UID: id.HostUID, GID: id.HostGID}
	if s := m.spawners[key]; s != nil {
		return s, nil
	}
	s, err := m.newSpawner(id)
	if err == nil {
		m.spawners[key] = s
	}
	return s, err
}

func (m *Machine) newSpawner(id ns.IDs) (*launch.Spawner, error) {
	switch {
	case !m.host.Become && m.options.CallersThread:
		return launch.NewCallerSpawner()
	case !m.host.Become:
		return launch.NewSpawner(nil)
	}
	return launch.NewSpawner(&launch.Identity{UID: id.HostUID, GID: id.HostGID})
}

func (m *Machine) config(c *box.Config) setup.Config {
	return setup.Config{
		Table: c.Table, IDs: c.IDs, Hostname: c.Hostname, Name: c.Name,
		ProcFD: int(m.proc.Fd()), PauseFD: int(m.pause.Fd()), PipeFD: int(m.lifelineRead.Fd()),
	}
}

// sources opens the host trees of a table with the engine's privileges, where
// it has more than the guest's user. The result is nil otherwise.
func (m *Machine) sources(t rootfs.Table) (*setup.Sources, error) {
	if !m.host.Mount || !m.host.Become {
		return nil, nil
	}
	return setup.OpenSources(t)
}

// timing adds up the steps of a program by phase. Each step lasts until the
// next one begins, on whichever process; the last one until end.
func (m *Machine) timing(p *launch.Program, end uint64, begin time.Time) box.Timing {
	rate := m.clock.Rate()
	var by [launch.Exec + 1]time.Duration
	stamps := p.Stamps()
	slices.SortFunc(stamps, func(a, b launch.Stamp) int { return cmp.Compare(a.Cycles, b.Cycles) })
	for i, s := range stamps {
		next := end
		if i+1 < len(stamps) {
			next = stamps[i+1].Cycles
		}
		by[s.Phase] += time.Duration(float64(next-s.Cycles) * rate)
	}
	return box.Timing{
		Namespaces: by[launch.Namespaces], Mounts: by[launch.Mounts], Confine: by[launch.Confine], Exec: by[launch.Exec],
		Total: time.Since(begin),
	}
}
