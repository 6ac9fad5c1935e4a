//go:build amd64 || arm64

package holdback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// A Watch looks after one sandbox's workspace. Its methods may be called
// concurrently.
type Watch struct {
	watcher *Watcher
	dirs    []*watchedDir
	first   map[string]bool // first elements of the watched names, in lower case
	locks   []string        // names of kind Lock
	locked  atomic.Bool     // one of them has appeared

	mu sync.Mutex // held while looking
	finder
	wds    map[int32]bool
	closed bool
	failed error
	poll   *time.Timer // nil: events come
}

// pollEvery is how often a Watch looks that is not told of everything.
const pollEvery = 10 * time.Millisecond

// beginToPoll looks from time to time: guests share their user's instances and watches of
// inotify, and can use them up. It is called with the lock held.
func (w *Watch) beginToPoll() {
	if w.poll != nil {
		return
	}
	w.poll = time.AfterFunc(pollEvery, func() {
		w.look()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.closed {
			w.poll.Reset(pollEvery)
		}
	})
}

// Start begins to look after the directories. Its error is rootfs.ErrChanged if
// something exists that would be held back: it is the host's. The caller calls Close.
func (wr *Watcher) Start(store *Store, workspace string, dirs []protect.Dir) (_ *Watch, err error) {
	w := &Watch{
		watcher: wr, first: make(map[string]bool), wds: make(map[int32]bool),
		finder: finder{
			store: store, told: make(map[string]bool), taken: make(map[string]int), times: make(map[string]int),
			storm: make(chan struct{}),
		},
	}
	w.follow = func(fd int, name string, events uint32) {
		if wd, err := wr.add(w, fd, name, events); err == nil {
			w.wds[wd] = true
		} else {
			w.beginToPoll()
		}
	}
	defer func() {
		if err != nil { // what is there stays
			err = errors.Join(err, w.release())
		}
	}()
	for _, dir := range dirs {
		file, err := openSource(dir.Source)
		if err != nil {
			return nil, err
		}
		d := &watchedDir{Dir: dir, file: file, base: dir.Source.Path}
		if rel, err := filepath.Rel(workspace, dir.Source.Path); err == nil && filepath.IsLocal(rel) {
			d.base, d.rel = workspace, rel
		}
		w.dirs = append(w.dirs, d)
		for _, n := range dir.Watched {
			w.minds(n)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.dirs {
		if existing := (&look{finder: &w.finder, d: d, only: true}).all(); existing != nil {
			return nil, existing
		}
		w.follow(int(d.file.Fd()), "", dirEvents)
	}
	return w, nil
}

// openSource opens the directory that a plan means.
func openSource(src rootfs.Source) (*os.File, error) {
	fd, err := unix.Open(src.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: src.Path, Err: err}
	}
	f := os.NewFile(uintptr(fd), src.Path)
	st, err := rootfs.Stat(fd)
	if err == nil {
		err = src.Is(rootfs.Identify(&st))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// minds has events of a name start a look.
func (w *Watch) minds(n protect.Watched) {
	switch n.What {
	case protect.Tell:
		return // at the end
	case protect.Lock:
		w.locks = append(w.locks, n.Name)
		return
	}
	name, _, _ := strings.Cut(n.Name, "/")
	w.first[strings.ToLower(name)] = true // in lower case: some file systems ignore case
	if n.What == protect.Bare {
		for _, name := range n.Had {
			w.first[strings.ToLower(name)] = true
		}
	}
}

// concerns reports whether a name in a directory is, or leads to, what is watched.
func (w *Watch) concerns(name string) bool {
	if slices.Contains(w.locks, name) {
		w.locked.Store(true) // it is gone in a moment
	}
	return w.first[strings.ToLower(name)]
}

// look moves what has appeared.
func (w *Watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.lookLocked(false)
	}
}

func (w *Watch) lookLocked(tell bool) {
	w.tried = w.locked.Load()
	for _, d := range w.dirs {
		if err := (&look{finder: &w.finder, d: d, tell: tell}).all(); err != nil && w.failed == nil {
			w.failed = fmt.Errorf("hold back what was made in %s: %w", d.Source.Path, err)
		}
	}
}

// Storm is closed when the same path was made again and again. It is nil for a nil
// Watch.
func (w *Watch) Storm() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.storm
}

// Settle looks once more, and returns what has been found since the last time. A
// command has ended: what it made is not there when Settle returns.
func (w *Watch) Settle() ([]Found, error) {
	if w == nil {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.lookLocked(true)
	}
	found, err := w.found, w.failed
	w.found, w.failed = nil, nil
	return found, err
}

// Close ends the watch after a last look. No guest runs any more. What it finds, the
// next Settle returns.
func (w *Watch) Close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed, w.follow = true, nil
	if w.poll != nil {
		w.poll.Stop()
	}
	w.lookLocked(true)
	for _, d := range w.dirs {
		for name := range w.taken {
			removeEmpty(int(d.file.Fd()), name)
		}
	}
	return w.release()
}

func (w *Watch) release() error {
	w.watcher.forget(w, w.wds)
	var errs []error
	for _, d := range w.dirs {
		errs = append(errs, d.file.Close())
	}
	return errors.Join(errs...)
}

// removeEmpty removes the directories in which everything was taken.
func removeEmpty(dir int, name string) {
	if unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) != unix.ENOTEMPTY {
		return
	}
	d, err := openDir(dir, name)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxOneByOne)
	for _, inner := range names {
		removeEmpty(int(d.Fd()), inner)
	}
	_ = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) // it may not be empty
}

// all compares the directory with what may not be in it. It goes on after an error.
func (l *look) all() error {
	var errs []error
	for _, n := range l.d.Watched {
		var err error
		switch n.What {
		case protect.Tell:
			err = l.made(n)
		case protect.Hold:
			err = l.path(n)
		case protect.Repository:
			err = l.repository(int(l.d.file.Fd()), n.Name, n)
		case protect.Bare:
			err = l.bare(n)
		case protect.Lock:
			l.refused(n)
		case protect.Worktrees:
			err = l.worktrees(int(l.d.file.Fd()), "", n)
		case protect.Modules:
			err = l.modules(int(l.d.file.Fd()), n.Name, "", n, 0)
		}
		if err != nil {
			errs = append(errs, gone(err))
		}
	}
	return errors.Join(errs...)
}
