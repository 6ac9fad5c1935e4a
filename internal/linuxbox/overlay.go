//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/privatedir"
	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/workspace"
)

// overlayLayers are the layers of an overlaid workspace.
type overlayLayers struct {
	workspace.Overlay
	store string // on disk; "": in memory
}

// startOverlaid starts a sandbox whose workspace has an overlay, and keeps hold of
// both layers: when the sandbox has ended there is no path to a tmpfs of it.
func (m *Machine) startOverlaid(c *box.Config, begin time.Time) (_ *box.Started, err error) {
	l := &overlayLayers{Overlay: workspace.Overlay{Rules: c.Overlay.Rules, Slack: c.Overlay.Slack}}
	if m.host.Become && c.Overlay.Workspace.UID != 0 {
		// Not as root: a guest has a say in what is at the paths. Root's own workspace
		// only root may write to.
		l.As = m.owner(c).Do
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.discard())
		}
	}()
	if l.Lower, err = openSource(c.Overlay.Workspace); err != nil {
		return nil, err
	}
	with, upperFD := *c, -1
	var from *os.File
	if c.Overlay.OnDisk {
		with.Table, err = l.makeStore(c.Table, m.host.Lookup)
	} else {
		var to *os.File
		if from, to, err = reportPipe(true); err == nil {
			defer from.Close()
			defer to.Close()
			upperFD = int(to.Fd())
		}
	}
	if err != nil {
		return nil, err
	}
	b, err := m.start(&with, upperFD, begin)
	if err != nil {
		return nil, err
	}
	l.Since = time.Now()
	if from != nil {
		if l.Upper = receive(from); l.Upper == nil {
			b.Kill()
			return nil, errors.Join(errors.New("the sandbox did not hand over its upper"), b.Wait())
		}
	}
	return &box.Started{Box: b, Timing: b.timing, Layers: &box.Layers{Overlay: &l.Overlay, Discard: l.discard}}, nil
}

// openSource opens the directory that the plan means.
func openSource(src rootfs.Source) (*os.File, error) {
	f, err := os.OpenFile(src.Path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	st, err := rootfs.Stat(int(f.Fd()))
	if err == nil {
		err = src.Is(rootfs.Identify(&st))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// makeStore makes a directory of its own for what is written, as the guest's user,
// and returns the table with it.
func (l *overlayLayers) makeStore(t rootfs.Table, look rootfs.Lookup) (rootfs.Table, error) {
	t = slices.Clone(t)
	i := slices.IndexFunc(t, func(n rootfs.Node) bool { return n.Upper.Path != "" })
	dir := path.Join(t[i].Upper.Path, "tegmen-"+rand.Text())
	err := l.asOwner(func() error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		l.store = dir
		for name, mode := range map[string]uint32{"upper": t[i].Mode, "work": 0o700} {
			made := path.Join(dir, name)
			if err := errors.Join(os.Mkdir(made, 0o700), os.Chmod(made, os.FileMode(mode))); err != nil {
				return err
			}
		}
		var err error
		l.Upper, err = os.Open(path.Join(dir, "upper"))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("upper: %w", err)
	}
	t[i].Upper, err = look(dir)
	return t, err
}

func (l *overlayLayers) asOwner(f func() error) error {
	if l.As == nil {
		return f()
	}
	return l.As(f)
}

// discard closes the layers and removes what is on disk.
func (l *overlayLayers) discard() error {
	var errs []error
	for _, f := range []*os.File{l.Upper, l.Lower} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if l.store != "" {
		errs = append(errs, l.asOwner(func() error { return privatedir.RemoveTree(l.store) }))
	}
	return errors.Join(errs...)
}
