//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"cmp"
	"os"
	"slices"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/privatedir"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
	"golang.org/x/sys/unix"
)

func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
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

func (m *Machine) config(c *box.Config, l *rootfs.Layout) setup.Config {
	return setup.Config{
		Table: c.Table, Layout: l, IDs: c.IDs, Hostname: c.Hostname, Name: c.Name,
		ProcFD: int(m.proc.Fd()), PauseFD: int(m.pause.Fd()), PipeFD: int(m.lifelineRead.Fd()),
	}
}

// sources opens the host trees of a table with the engine's privileges, where
// it has more than the guest's user. The result is nil otherwise.
func (m *Machine) sources(c *box.Config, t rootfs.Table) (*setup.Sources, error) {
	if !m.host.Mount || !m.host.Become {
		return nil, nil
	}
	var idmap *os.File
	if slices.ContainsFunc(t, func(n rootfs.Node) bool { return n.Mapped }) {
		var err error
		if idmap, err = m.idmap(c.IDs); err != nil {
			return nil, err
		}
	}
	return setup.OpenSources(t, idmap)
}

// idmap returns the id map for guests who are this user of the host.
func (m *Machine) idmap(id ns.IDs) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := launch.Identity{UID: id.HostUID, GID: id.HostGID}
	if f := m.idmaps[key]; f != nil {
		return f, nil
	}
	f, err := setup.NewIDMap(key.UID, key.GID, m.pause, m.lifelineRead)
	if err == nil {
		m.idmaps[key] = f
	}
	return f, err
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
