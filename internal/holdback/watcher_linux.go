//go:build amd64 || arm64

package holdback

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A Watcher tells watches when to look. It is one instance of inotify(7) for all of
// them, since a user may have few (fs.inotify.max_user_instances, 128 by default).
// The zero Watcher is ready. Its methods may be called concurrently.
type Watcher struct {
	mu      sync.Mutex
	inotify *os.File
	reader  sync.WaitGroup
	byWD    map[int32]map[subscriber]string // and the directory's name: "" is a root
}

// A subscriber is told to look.
type subscriber interface {
	concerns(name string) bool // whether a name in a root is of interest
	look()
}

// What may be made in a directory, and a file that changes.
const (
	dirEvents  = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ATTRIB | unix.IN_ONLYDIR
	fileEvents = unix.IN_MODIFY | unix.IN_CLOSE_WRITE
)

// add has w told of events at an open file. It may be told already.
func (wr *Watcher) add(w subscriber, fd int, name string, events uint32) (int32, error) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	if wr.inotify == nil {
		if err := wr.start(); err != nil {
			return 0, err
		}
	}
	wd, err := unix.InotifyAddWatch(int(wr.inotify.Fd()), magic(fd), events)
	if err != nil {
		return 0, fmt.Errorf("inotify_add_watch: %w", err)
	}
	if wr.byWD[int32(wd)] == nil {
		wr.byWD[int32(wd)] = make(map[subscriber]string)
	}
	wr.byWD[int32(wd)][w] = name
	return int32(wd), nil
}

// start begins to read events.
func (wr *Watcher) start() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("inotify_init1: %w", err)
	}
	wr.inotify, wr.byWD = os.NewFile(uintptr(fd), "inotify"), make(map[int32]map[subscriber]string)
	f := wr.inotify
	wr.reader.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := f.Read(buf)
			if err != nil {
				return // closed
			}
			for w := range wr.told(buf[:n]) {
				w.look()
			}
		}
	})
	return nil
}

// told is who has to look after some events.
func (wr *Watcher) told(events []byte) map[subscriber]bool {
	look := make(map[subscriber]bool)
	wr.mu.Lock()
	defer wr.mu.Unlock()
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(events))
		mask := binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:end]), "\x00")
		events = events[end:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			for _, watches := range wr.byWD {
				for w := range watches {
					look[w] = true
				}
			}
		}
		if mask&unix.IN_IGNORED != 0 {
			delete(wr.byWD, wd)
		}
		for w, dir := range wr.byWD[wd] {
			// Without a name it is the directory itself, which has been closed or opened.
			if dir != "" || name == "" || w.concerns(name) {
				look[w] = true
			}
		}
	}
	return look
}

// forget ends what add began. The descriptors of others' watches stay.
func (wr *Watcher) forget(w subscriber, wds map[int32]bool) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	for wd := range wds {
		watches := wr.byWD[wd]
		delete(watches, w)
		if watches != nil && len(watches) == 0 {
			delete(wr.byWD, wd)
			_, _ = unix.InotifyRmWatch(int(wr.inotify.Fd()), uint32(wd)) // what it watched may be gone
		}
	}
}

// Close ends the watcher. All its watches have been closed.
func (wr *Watcher) Close() error {
	wr.mu.Lock()
	f := wr.inotify
	wr.inotify = nil
	wr.mu.Unlock()
	if f == nil {
		return nil
	}
	err := f.Close()
	wr.reader.Wait()
	return err
}
