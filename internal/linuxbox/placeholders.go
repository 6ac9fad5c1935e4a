//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// placeholders are those of one sandbox.
type placeholders struct {
	dirs    []*protect.Held
	janitor *setup.Janitor // removes them if this process is killed
}

func (m *Machine) makePlaceholders(c *box.Config) (ph *placeholders, err error) {
	ph = new(placeholders)
	defer func() {
		if err != nil {
			err = errors.Join(err, ph.close())
		}
	}()
	var locked []*protect.Held
	var forJanitor []setup.PlaceholderDir
	for _, dir := range c.Placeholders {
		d, err := protect.Open(dir, protect.Guest{UID: c.IDs.HostUID, Other: m.host.Become})
		if err != nil {
			return ph, err
		}
		ph.dirs = append(ph.dirs, d)
		if err := d.Hold(); err != nil && err != protect.ErrUnwritable {
			return ph, fmt.Errorf("protect %s: %w", path.Join(dir.Source.Path, protect.LockName), err)
		} else if err == nil {
			locked, forJanitor = append(locked, d), append(forJanitor, janitorDir(d))
		}
	}
	if len(locked) == 0 {
		return ph, nil
	}
	s, err := m.spawner(c.IDs)
	if err != nil {
		return ph, err
	}
	// Before there is anything to remove: this process can be killed any time.
	ph.janitor = setup.NewJanitor(int(m.lifelineRead.Fd()), forJanitor)
	if err := s.Run(ph.janitor.Program, 0); err != nil {
		return ph, err
	}
	for n, d := range locked {
		for i, p := range d.Placeholders {
			id, err := d.Make(p)
			if err == nil {
				ph.janitor.Created(n, i, id)
			} else if err != protect.ErrUnwritable {
				return ph, fmt.Errorf("protect %s: %w", path.Join(d.Source.Path, p.Name), err)
			}
		}
	}
	return ph, nil
}

func janitorDir(d *protect.Held) setup.PlaceholderDir {
	dirFD, lockFD, lock := d.Descriptors()
	h := setup.PlaceholderDir{DirFD: dirFD, LockFD: lockFD, Lock: protect.LockName, LockID: lock}
	for _, p := range d.Placeholders {
		h.Placeholders = append(h.Placeholders, setup.Placeholder{Name: p.Name, File: p.File, Size: len(p.Data)})
	}
	return h
}

// source is what stands for a placeholder, if it could be made.
func (ph *placeholders) source(dir protect.Dir, p protect.Placeholder) (rootfs.Source, bool) {
	for _, d := range ph.dirs {
		if d.Source.Path == dir.Source.Path {
			return d.Made(p.Name)
		}
	}
	return rootfs.Source{}, false
}

// close removes the placeholders. Nothing runs in the sandbox any more.
func (ph *placeholders) close() error {
	if ph == nil {
		return nil
	}
	var errs []error
	for _, d := range ph.dirs {
		errs = append(errs, d.Close())
	}
	// Last, so that it does what this process, killed, could not.
	if ph.janitor != nil && ph.janitor.PID.Int() > 0 {
		pid := ph.janitor.PID.Int() // a child that has not been waited for: nobody else's
		errs = append(errs, unix.Kill(pid, unix.SIGKILL), launch.Reap(pid))
	}
	return errors.Join(errs...)
}
