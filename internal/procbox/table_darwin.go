package procbox

import (
	"errors"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// newQueue is a kqueue(2) that no child inherits.
func newQueue() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	queue, err := unix.Kqueue()
	if err == nil {
		unix.CloseOnExec(queue)
	}
	return queue, err
}

// kevent registers a change, and waits for events if there is room for some.
func kevent(queue int, changes, events []unix.Kevent_t) (n int, err error) {
	for {
		if n, err = unix.Kevent(queue, changes, events, nil); err != unix.EINTR {
			return n, err
		}
	}
}

func processEvent(pid, flags int, what uint32) []unix.Kevent_t {
	events := make([]unix.Kevent_t, 1)
	unix.SetKevent(&events[0], pid, unix.EVFILT_PROC, flags)
	events[0].Fflags = what
	return events
}

// waitable returns when a child has ended, without reaping it.
func waitable(pid int) error {
	queue, err := newQueue()
	if err != nil {
		return err
	}
	defer unix.Close(queue)
	_, err = kevent(queue, processEvent(pid, unix.EV_ADD|unix.EV_ONESHOT, unix.NOTE_EXIT), make([]unix.Kevent_t, 1))
	if err == unix.ESRCH { // it had ended before
		return nil
	}
	return err
}

// forkWatch tells when one of the processes forks that it has been told of. So
// there is little time for a child to leave its group and its parent unseen.
type forkWatch struct {
	queue int
	ended chan struct{}
}

func watchForks(forked func()) (*forkWatch, error) {
	queue, err := newQueue()
	if err != nil {
		return nil, err
	}
	w := &forkWatch{queue, make(chan struct{})}
	if _, err := kevent(queue, userEvent(unix.EV_ADD, 0), nil); err != nil {
		return nil, errors.Join(err, unix.Close(queue))
	}
	go func() {
		defer close(w.ended)
		events := make([]unix.Kevent_t, 64)
		for {
			n, err := kevent(queue, nil, events)
			woken := func(e unix.Kevent_t) bool { return e.Filter == unix.EVFILT_USER }
			if err != nil || slices.ContainsFunc(events[:n], woken) {
				return
			}
			forked()
		}
	}()
	return w, nil
}

// userEvent is the one that close sends.
func userEvent(flags int, what uint32) []unix.Kevent_t {
	events := make([]unix.Kevent_t, 1)
	unix.SetKevent(&events[0], 0, unix.EVFILT_USER, flags)
	events[0].Fflags = what
	return events
}

func (w *forkWatch) add(pid int) {
	_, _ = kevent(w.queue, processEvent(pid, unix.EV_ADD|unix.EV_CLEAR, unix.NOTE_FORK), nil) // it may have ended
}

func (w *forkWatch) close() error {
	if _, err := kevent(w.queue, userEvent(0, unix.NOTE_TRIGGER), nil); err != nil {
		return err
	}
	<-w.ended
	return unix.Close(w.queue)
}

// processTable is all processes, by pid (sysctl(3), kern.proc.all): a set-user-ID
// program is another user's, and still in its tree.
func processTable() (map[int]proc, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	const zombie = 5 // SZOMB, sys/proc.h
	all := make(map[int]proc, len(list))
	for _, k := range list {
		pid := int(k.Proc.P_pid)
		all[pid] = proc{
			pid: pid, parent: int(k.Eproc.Ppid), group: int(k.Eproc.Pgid), dead: k.Proc.P_stat == zombie,
			start: k.Proc.P_starttime.Nano(),
		}
	}
	return all, nil
}
