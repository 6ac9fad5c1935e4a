//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
)

// start makes a sandbox and its cgroup, side by side. upperFD is where the sandbox
// sends the directory of an overlay in memory; see setup.Config.
func (m *Machine) start(c *box.Config, upperFD int, begin time.Time) (*nsBox, error) {
	wait := m.cgroups.make(c)
	b, err := m.namespaces(c, upperFD, begin)
	g, gerr := wait()
	switch {
	case err != nil:
		return nil, errors.Join(err, g.close())
	case gerr != nil:
		b.Kill()
		return nil, errors.Join(gerr, b.Wait())
	}
	b.group = g
	return b, nil
}

func (m *Machine) namespaces(c *box.Config, upperFD int, begin time.Time) (*nsBox, error) {
	s, err := m.spawner(c.IDs)
	if err != nil {
		return nil, err
	}
	config := m.config(c, c.Table.Layout())
	t, err := m.templates.take(s, c, config.Layout)
	if err != nil {
		return nil, m.explain(err)
	}
	var init *setup.Init
	var pid int
	if t != nil {
		init, pid, err = m.fromTemplate(s, config, t)
		m.templates.release(t)
	} else {
		init, pid, err = m.direct(s, c, config, upperFD)
	}
	if err != nil {
		if init != nil && init.Verify() != nil {
			return nil, init.Verify() // and that is why
		}
		return nil, m.explain(err)
	}
	end := launch.Cycles()
	b := &nsBox{m: m, config: c, spawner: s, pid: pid, over: make(chan struct{})}
	if b.pidfd, err = openPidfd(pid); err != nil {
		return nil, errors.Join(err, unix.Kill(pid, unix.SIGKILL), launch.Reap(pid))
	}
	if err := init.Verify(); err != nil {
		b.Kill()
		return nil, errors.Join(err, b.Wait())
	}
	b.timing = m.timing(init.Program, end, begin)
	return b, nil
}

func (m *Machine) fromTemplate(s *launch.Spawner, c setup.Config, t *template) (*setup.Init, int, error) {
	networkFD := -1
	if n := t.networks.take(); n != nil {
		defer n.Close()
		networkFD = int(n.Fd())
	}
	init := setup.From(c, int(t.user.Fd()), int(t.mount.Fd()), networkFD)
	err := s.RunOnThread(init.Program, init.Flags)
	pid := init.PID.Int()
	if err != nil && pid > 0 {
		err = errors.Join(err, launch.Reap(pid))
	}
	return init, pid, err
}

func (m *Machine) direct(s *launch.Spawner, c *box.Config, config setup.Config, upperFD int) (*setup.Init, int, error) {
	config.UpperFD = upperFD
	var err error
	if config.Sources, err = m.sources(c, config.Layout.Outer()); err != nil {
		return nil, 0, err
	}
	init := setup.Direct(config)
	pid, err := s.Start(init.Program, init.Flags)
	return init, pid, errors.Join(err, config.Sources.Close())
}
