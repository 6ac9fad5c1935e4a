//go:build linux && (amd64 || arm64)

package engine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/workspace"
)

// layers are what an overlaid workspace consists of. They outlive the sandbox.
type layers struct {
	*workspace.Overlay
	store string // on disk; "": it is in memory
}

// startOverlaid starts a plan whose workspace has an overlay, and keeps hold of
// both layers: when the sandbox has ended there is no path to a tmpfs of it.
func (m *linuxMachine) startOverlaid(p *Plan) (b *linuxBox, err error) {
	l := &layers{Overlay: &workspace.Overlay{Rules: p.rules, Slack: int64(p.limits.Workspace)}}
	if m.host.Become {
		// Not as root: a guest has a say in what is at the paths.
		l.As = func(f func() error) error { return asGuest(m.host, p.ids, f) }
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.discard())
		}
	}()
	if l.Lower, err = openSource(*p.workspace); err != nil {
		return nil, err
	}
	with := *p
	var from *os.File
	if p.Spec.FS.Upper != "" {
		with.table, err = l.makeStore(p, m.host)
	} else {
		var to *os.File
		if from, to, err = reportPipe(true); err == nil {
			defer from.Close()
			defer to.Close()
			with.upperFD = int(to.Fd())
		}
	}
	if err != nil {
		return nil, err
	}
	if b, err = m.startOn(&with); err != nil {
		return nil, err
	}
	l.Since = time.Now()
	if from != nil {
		if l.Upper = receive(from); l.Upper == nil {
			b.kill()
			return nil, errors.Join(errors.New("the sandbox did not hand over its upper"), b.wait())
		}
	}
	b.layers = l
	return b, nil
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
func (l *layers) makeStore(p *Plan, h Host) (rootfs.Table, error) {
	t := slices.Clone(p.table)
	i := slices.IndexFunc(t, func(n rootfs.Node) bool { return n.Upper.Path != "" })
	dir := path.Join(t[i].Upper.Path, "tegmen-"+rand.Text())
	err := l.asOwner(func() error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		l.store = dir
		for name, mode := range map[string]uint32{"upper": t[i].Mode, "work": 0o700} {
			if err := errors.Join(os.Mkdir(path.Join(dir, name), 0o700), os.Chmod(path.Join(dir, name), os.FileMode(mode))); err != nil {
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
	t[i].Upper, err = h.Lookup(dir)
	return t, err
}

func (l *layers) asOwner(f func() error) error {
	if l.As == nil {
		return f()
	}
	return l.As(f)
}

// discard closes the layers and removes what is on disk.
func (l *layers) discard() error {
	var errs []error
	for _, f := range []*os.File{l.Upper, l.Lower} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if l.store != "" {
		errs = append(errs, l.asOwner(func() error { return removeTree(l.store) }))
	}
	return errors.Join(errs...)
}
