package sample

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// hidden counts processes that only their parents' lists of children reveal. A process
// that runs a program which its user may not read belongs to the program's owner, and
// procfs hides it from others. A guest could hide in this way by making such a program of
// the host load its own library.
type hidden struct {
	count int
	again time.Time
}

const hiddenPause = 100 * time.Millisecond

// find reads the children of all processes, 3 µs each, if that is due.
func (h *hidden) find(s *Sampler) (int, error) {
	begin := time.Now()
	if s.tree || begin.Before(h.again) {
		return h.count, nil // the host's /proc shows all processes
	}
	h.count = 0
	for _, p := range s.known {
		if time.Since(begin) > stretch {
			break
		}
		n, err := s.hiddenBelow(p)
		if err != nil {
			return h.count, err
		}
		h.count += n
	}
	h.again = time.Now().Add(max(hiddenPause, duty*time.Since(begin)))
	return h.count, nil
}

// hiddenBelow counts hidden processes among the children of a process.
func (s *Sampler) hiddenBelow(p *process) (n int, err error) {
	if p.threads <= 1 {
		return s.hiddenChildren(p.name + "/task/" + p.name + "/children")
	}
	dir, err := unix.Openat(s.procFD, p.name+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, unlessGone(err)
	}
	defer unix.Close(dir)
	var each error
	err = s.entries(dir, 0, func(name []byte, _ int64) bool {
		if _, ok := parsePID(name); ok {
			var m int
			m, each = s.hiddenChildren(p.name + "/task/" + string(name) + "/children")
			n += m
		}
		return each == nil
	})
	return n, errors.Join(each, unlessGone(err))
}

// hiddenChildren counts the processes of a list that procfs does not show. It reads the
// list twice: a process that is in it only once has ended.
func (s *Sampler) hiddenChildren(file string) (n int, err error) {
	var missing []int
	listed := func(each func(pid int)) error {
		length, err := readAt(s.procFD, file, s.text)
		for b, ok := s.text[:length], true; ok; {
			var pid uint64
			if pid, _, b, ok = number(b); ok {
				each(int(pid))
			}
		}
		return unlessGone(err)
	}
	err = listed(func(pid int) {
		if s.known[pid] == nil && isGone(unix.Faccessat(s.procFD, strconv.Itoa(pid), unix.F_OK, 0)) {
			missing = append(missing, pid)
		}
	})
	if err != nil || missing == nil {
		return 0, err
	}
	err = listed(func(pid int) {
		if slices.Contains(missing, pid) {
			n++
		}
	})
	return n, err
}
