//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// templates keeps, for each kind of file tree, the namespaces in which its
// shared part stands ready. No process is kept.
type templates struct {
	m     *Machine
	mu    sync.Mutex
	byKey map[string]*template
	takes int // how often one was taken

	last    *box.Config // whose key was computed last: one Plan is often started many times
	lastKey string
}

// template is one of them. It is built when it is wanted the second time: a
// program that starts one sandbox only does not pay for it.
type template struct {
	wanted      int
	last        int // the take of templates that was its last
	users       int // starts that use it now
	user, mount *os.File
	networks    networks
}

// networks are network namespaces made ahead, each for one sandbox. They are
// made on a thread of their own: a start does not queue behind one.
type networks struct {
	ready chan *os.File // closed by the goroutine that fills it
	quit  chan struct{}
}

// aheadNetworks is how many are kept: enough for a burst, at some 200 KiB of
// kernel memory each.
const aheadNetworks = 4

// fill starts to make networks. The spawner is closed at the end.
func (n *networks) fill(s *launch.Spawner, c setup.Config, user int) {
	n.ready, n.quit = make(chan *os.File, aheadNetworks), make(chan struct{})
	go func() {
		defer s.Close()
		defer close(n.ready)
		for {
			p, flags, slot := setup.Network(c, user)
			if s.Run(p, flags) != nil {
				return // sandboxes make their own, and report what is wrong
			}
			f := os.NewFile(uintptr(slot.Int()), "network namespace")
			select {
			case n.ready <- f:
			case <-n.quit:
				_ = f.Close() // nobody has it
				return
			}
		}
	}()
}

// take returns one, or nil when none is ready. The caller closes it.
func (n *networks) take() *os.File {
	select {
	case f := <-n.ready:
		return f
	default:
		return nil
	}
}

func (n *networks) close() {
	if n.quit == nil {
		return
	}
	close(n.quit)
	for f := range n.ready {
		_ = f.Close() // nobody has it
	}
}

// maxTemplates bounds what an engine keeps that is asked for a new tree every
// time; each is two descriptors and a dozen mounts.
const maxTemplates = 64

// take returns the template for a plan, or nil when there is none (yet). The caller
// releases it.
func (ts *templates) take(s *launch.Spawner, c *box.Config, l *rootfs.Layout) (*template, error) {
	if ts == nil || l.Direct {
		return nil, nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	key := ts.key(c, l)
	t := ts.byKey[key]
	if t == nil {
		if err := ts.makeRoom(); err != nil {
			return nil, err
		}
		t = new(template)
		ts.byKey[key] = t
	}
	ts.takes++
	t.last = ts.takes
	if t.wanted++; t.wanted == 1 {
		return nil, nil
	}
	if t.user == nil {
		if err := ts.build(t, s, c, l); err != nil {
			return nil, err
		}
	}
	t.users++
	return t, nil
}

func (ts *templates) release(t *template) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.users--
}

// makeRoom drops the template that was not taken for the longest time, if there are as
// many as there may be. It would keep a workspace's file system busy as well.
func (ts *templates) makeRoom() error {
	if len(ts.byKey) < maxTemplates {
		return nil
	}
	oldest := ""
	for key, t := range ts.byKey {
		if t.users == 0 && (oldest == "" || t.last < ts.byKey[oldest].last) {
			oldest = key
		}
	}
	t := ts.byKey[oldest]
	if t == nil {
		return nil // all are in use
	}
	delete(ts.byKey, oldest)
	return t.close()
}

// key is the same for sandboxes that may share a template. It covers the whole table:
// the points on which the rest is mounted are made in the shared part.
func (ts *templates) key(c *box.Config, l *rootfs.Layout) string {
	if ts.last != c {
		ts.last, ts.lastKey = c, fmt.Sprint(c.IDs, "\n")+l.Outer().Key()
	}
	return ts.lastKey
}

func (ts *templates) build(t *template, s *launch.Spawner, c *box.Config, l *rootfs.Layout) error {
	config := ts.m.config(c, l)
	var err error
	if config.Sources, err = ts.m.sources(c, l.Kept()); err != nil {
		return err
	}
	tmpl := setup.NewTemplate(config)
	err = errors.Join(s.RunOnThread(tmpl.Program, tmpl.Flags), config.Sources.Close())
	file := func(slot *launch.Slot, name string) *os.File {
		if slot.Int() < 0 {
			return nil
		}
		return os.NewFile(uintptr(slot.Int()), name)
	}
	t.user, t.mount = file(tmpl.UserFD, "user namespace"), file(tmpl.MountFD, "mount namespace")
	if changed := tmpl.Verify(); changed != nil {
		err = changed // and that is why, if it has failed
	}
	if err != nil {
		return errors.Join(err, t.close())
	}
	own, err := ts.m.newSpawner(c.IDs)
	if err != nil {
		return errors.Join(err, t.close())
	}
	t.networks.fill(own, config, int(t.user.Fd()))
	return nil
}

func (t *template) close() error {
	t.networks.close()
	var errs []error
	for _, f := range []**os.File{&t.user, &t.mount} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(errs...)
}

func (ts *templates) close() error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var errs []error
	for _, t := range ts.byKey {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}
