//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/holdback"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/protect"
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
	watcher  holdback.Watcher
	mu       sync.Mutex
	spawners map[launch.Identity]*launch.Spawner
	idmaps   map[launch.Identity]*os.File
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
		idmaps: make(map[launch.Identity]*os.File),
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

// Close releases everything. The sandboxes have ended.
func (m *Machine) Close() error {
	var errs []error
	if m.templates != nil {
		errs = append(errs, m.templates.close())
	}
	errs = append(errs, m.cgroups.close(), m.watcher.Close())
	m.mu.Lock()
	for _, s := range m.spawners {
		s.Close()
	}
	for _, f := range m.idmaps {
		errs = append(errs, f.Close())
	}
	m.mu.Unlock()
	for _, f := range []*os.File{m.proc, m.pause, m.gate, m.lifelineRead, m.lifelineWrite, m.null} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Start makes a sandbox. What must exist before it is made comes first: the place of
// its cgroup, the layers of an overlay, or placeholders in the workspace.
func (m *Machine) Start(c *box.Config) (*box.Started, error) {
	begin := time.Now()
	if err := m.cgroups.prepare(c); err != nil {
		return nil, err
	}
	switch {
	case c.Overlay != nil:
		return m.startOverlaid(c, begin)
	case len(c.Placeholders)+len(c.Watched) > 0:
		return m.startProtected(c, begin)
	}
	b, err := m.start(c, -1, begin)
	if err != nil {
		return nil, err
	}
	return &box.Started{Box: b, Timing: b.timing}, nil
}

// startProtected makes the placeholders, if there are any, and the sandbox, whose
// workspace is watched before there is anyone in it.
func (m *Machine) startProtected(c *box.Config, begin time.Time) (*box.Started, error) {
	ph, err := m.makePlaceholders(c)
	if err != nil {
		return nil, err
	}
	with := *c
	with.Table = protect.Mount(c.Table, c.Placeholders, ph.source)
	var watch *holdback.Watch
	if len(c.Watched) > 0 {
		if watch, err = m.watcher.Start(holdback.Open(c.Held), c.Workspace, c.Watched); err != nil {
			return nil, errors.Join(err, ph.close())
		}
	}
	b, err := m.start(&with, -1, begin)
	if err != nil {
		return nil, errors.Join(err, watch.Close(), ph.close())
	}
	b.placeholders, b.watch = ph, watch
	if ph.janitor != nil {
		ph.janitor.Init.Set(b.pid)
	}
	b.timing.Total = time.Since(begin)
	return &box.Started{Box: b, Timing: b.timing}, nil
}
