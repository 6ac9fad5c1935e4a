//go:build linux && (amd64 || arm64)

package engine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// linuxMachine is the Linux side of an Engine: what all its sandboxes use.
type linuxMachine struct {
	host      Host
	templates *templates // nil: every sandbox is made from nothing
	here      bool       // Options.CallersThread
	clock     launch.Clock

	signals  []unix.Signal // to reset in commands
	proc     *os.File      // the host's /proc, O_PATH
	pause    *os.File      // image of pid 1
	gate     *os.File      // image that commands execute first
	lifeline *os.File      // read end; pid 1 of every sandbox holds it
	hold     *os.File      // write end, which nobody else has
	null     *os.File

	plain    posixMachine // for LevelNone
	cgroups  cgroups
	commands commands
	swept    sync.Map // users whose sandboxes without namespaces have been cleaned up after
	mu       sync.Mutex
	spawners map[launch.Identity]*launch.Spawner
}

func openMachine(h Host, o Options) (_ machine, err error) {
	if h.OS != "linux" { // of a test: what macOS has works here, too
		return openPosix(h)
	}
	if lent() {
		return nil, invalid("setuid, setgid or with capabilities of its own: the caller would get at what is not the caller's; take these off the file")
	}
	m := &linuxMachine{host: h, cgroups: cgroups{place: h.Cgroup, ahead: !o.NoTemplates}, here: o.CallersThread, clock: launch.NewClock(), signals: launch.IgnorableSignals(), spawners: make(map[launch.Identity]*launch.Spawner)}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if m.proc, err = openPath("/proc"); err != nil {
		return nil, err
	}
	if m.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	m.plain.host, m.plain.null = h, m.null
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
	m.lifeline, m.hold = os.NewFile(uintptr(pipe[0]), "lifeline"), os.NewFile(uintptr(pipe[1]), "lifeline")
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

// close releases everything. The sandboxes have ended.
func (m *linuxMachine) close() error {
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
	for _, f := range []*os.File{m.proc, m.pause, m.gate, m.lifeline, m.hold, m.null} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// spawner returns the thread that starts processes as the plan's host user.
func (m *linuxMachine) spawner(id identity) (*launch.Spawner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := launch.Identity{UID: id.hostUID, GID: id.hostGID}
	if s := m.spawners[key]; s != nil {
		return s, nil
	}
	s, err := m.newSpawner(id)
	if err == nil {
		m.spawners[key] = s
	}
	return s, err
}

func (m *linuxMachine) newSpawner(id identity) (*launch.Spawner, error) {
	switch {
	case !m.host.Become && m.here:
		return launch.NewCallerSpawner()
	case !m.host.Become:
		return launch.NewSpawner(nil)
	}
	return launch.NewSpawner(&launch.Identity{UID: id.hostUID, GID: id.hostGID})
}

func (m *linuxMachine) config(p *Plan) setup.Config {
	return setup.Config{
		Table:    p.table,
		IDs:      p.ids.ns(),
		Hostname: p.hostname, Name: p.Spec.Name,
		ProcFD: int(m.proc.Fd()), PauseFD: int(m.pause.Fd()), PipeFD: int(m.lifeline.Fd()), UpperFD: p.upperFD,
	}
}

// sources opens the host trees of a table with the engine's privileges, where
// it has more than the guest's user. The result is nil otherwise.
func (m *linuxMachine) sources(t rootfs.Table) (*setup.Sources, error) {
	if !m.host.Mount || !m.host.Become {
		return nil, nil
	}
	return setup.OpenSources(t)
}

func (m *linuxMachine) start(p *Plan) (box, error) {
	if p.plain() {
		return m.plain.start(p)
	}
	start := m.startOn
	switch {
	case p.overlaid():
		start = m.startOverlaid
	case len(p.ghostDirs) > 0:
		start = m.startGuarded
	}
	b, err := start(p)
	if err != nil {
		return nil, err // and no box that is nil
	}
	if b.made == nil {
		b.made = p
	}
	return b, nil
}

// startOn makes a sandbox on what is there.
func (m *linuxMachine) startOn(p *Plan) (*linuxBox, error) {
	if p.bare() {
		return m.startBare(p)
	}
	begin := time.Now()
	group := m.cgroups.begin(p)
	b, err := m.startIn(p, begin)
	g, gerr := group()
	switch {
	case err != nil:
		return nil, errors.Join(err, g.close())
	case gerr != nil:
		b.kill()
		return nil, errors.Join(gerr, b.wait())
	}
	b.group = g
	return b, nil
}

func (m *linuxMachine) startIn(p *Plan, begin time.Time) (*linuxBox, error) {
	s, err := m.spawner(p.ids)
	if err != nil {
		return nil, err
	}
	t, err := m.templates.take(s, p)
	if err != nil {
		return nil, m.explain(err)
	}
	var init *setup.Init
	var pid int
	if t != nil {
		init, pid, err = m.fromTemplate(s, p, t)
	} else {
		init, pid, err = m.direct(s, p)
	}
	if err != nil {
		if init != nil && init.Verify() != nil {
			return nil, init.Verify() // and that is why
		}
		return nil, m.explain(err)
	}
	end := launch.Cycles()
	b := &linuxBox{m: m, spawner: s, pid: pid, over: make(chan struct{})}
	if b.pidfd, err = pidfdOpen(pid); err != nil {
		return nil, errors.Join(err, unix.Kill(pid, unix.SIGKILL), launch.Reap(pid))
	}
	if err := init.Verify(); err != nil {
		b.kill()
		return nil, errors.Join(err, b.wait())
	}
	b.took = m.timing(init.Program, end, begin)
	return b, nil
}

func (m *linuxMachine) fromTemplate(s *launch.Spawner, p *Plan, t *template) (*setup.Init, int, error) {
	networkFD := -1
	if n := t.networks.take(); n != nil {
		defer n.Close()
		networkFD = int(n.Fd())
	}
	init := setup.From(m.config(p), int(t.user.Fd()), int(t.mount.Fd()), networkFD)
	err := s.RunOnThread(init.Program, init.Flags)
	pid := init.PID.Int()
	if err != nil && pid > 0 {
		err = errors.Join(err, launch.Reap(pid))
	}
	return init, pid, err
}

func (m *linuxMachine) direct(s *launch.Spawner, p *Plan) (*setup.Init, int, error) {
	c := m.config(p)
	var err error
	if c.Sources, err = m.sources(p.table); err != nil {
		return nil, 0, err
	}
	init := setup.Direct(c)
	pid, err := s.Start(init.Program, init.Flags)
	return init, pid, errors.Join(err, c.Sources.Close())
}

// timing adds up the steps of a program by phase. Each step lasts until the
// next one begins, on whichever process; the last one until end.
func (m *linuxMachine) timing(p *launch.Program, end uint64, begin time.Time) Timing {
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
	return Timing{
		Namespaces: by[launch.Namespaces], Mounts: by[launch.Mounts], Confine: by[launch.Confine], Exec: by[launch.Exec],
		Total: time.Since(begin),
	}
}

// linuxBox is a sandbox: its pid 1.
type linuxBox struct {
	m       *linuxMachine
	spawner *launch.Spawner
	pid     int
	pidfd   *os.File
	took    Timing
	made    *Plan
	bare    *bareBox // nil: it has namespaces
	ghosts  *ghosts  // nil: none
	group   *group   // nil: it has no cgroup
	sampled sampled
	layers  *layers // of the workspace; nil: it has no overlay

	ending sync.Once
	over   chan struct{} // closed when nothing is left of it
}

// kill ends everything in the sandbox.
func (b *linuxBox) kill() {
	if b.bare != nil {
		b.bare.kill()
		return
	}
	_ = sendSignal(b.pidfd, unix.SIGKILL) // gone already is as good
	b.ending.Do(func() {
		if b.group != nil {
			b.group.Unthrottle()
		}
		go b.reapStrays()
	})
}

// dying tells whether pid 1 is past living: it waits for the last of the
// others, which die with it, and only then is reaped.
func (b *linuxBox) dying() bool {
	if b.bare != nil {
		return false
	}
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

// wait returns when nothing is left of the sandbox. Commands in it are waited
// for by others first: pid 1 ends after them.
func (b *linuxBox) wait() error {
	if b.bare != nil {
		return b.bare.wait()
	}
	_, _, err := waitFor(b.pidfd, b.pid, b.kill)
	close(b.over)
	b.sampled.close()
	return errors.Join(err, b.pidfd.Close(), b.ghosts.close(), b.group.close())
}

func (b *linuxBox) plan() *Plan      { return b.made }
func (b *linuxBox) timing() Timing   { return b.took }
func (b *linuxBox) overlay() *layers { return b.layers }
