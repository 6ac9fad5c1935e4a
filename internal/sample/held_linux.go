package sample

import (
	"errors"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// held is what a sandbox holds in memory by descriptors: memfds. Files on its tmpfs
// are counted there, whether or not they have a name.
//
// To find them, all descriptors of all processes are looked at, 3 µs each. That
// may take a twentieth of the time, and a stretch of it ends after a while; the next goes
// on from there.
type held struct {
	dev    uint64 // of the kernel's own tmpfs
	files  map[uint64]heldFile
	sum    uint64
	pass   uint64
	pid    int   // the next stretch begins here,
	offset int64 // and here in its directory
	again  time.Time
}

type heldFile struct{ bytes, pass uint64 }

const (
	stretch   = 20 * time.Millisecond
	duty      = 20                    // one part in this many of the time goes into it
	heldPause = 10 * time.Millisecond // between two stretches, at least
)

// open asks what a memfd is on.
func (h *held) open() error {
	h.files = make(map[uint64]heldFile)
	fd, err := unix.MemfdCreate("tegmen-sample", unix.MFD_CLOEXEC)
	if err != nil {
		return &fs.PathError{Op: "memfd_create", Path: "tegmen-sample", Err: err}
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	h.dev = st.Dev
	return errors.Join(err, unix.Close(fd))
}

// scan returns how many bytes are in memfds, as last known.
func (h *held) scan(s *Sampler) (uint64, error) {
	begin := time.Now()
	if begin.Before(h.again) {
		return h.sum, nil
	}
	if h.pid == 0 {
		h.pass++
	}
	for _, pid := range s.pids {
		if pid < h.pid {
			continue
		}
		if pid != h.pid {
			h.offset = 0
		}
		h.pid = pid
		done, err := h.scanOne(s, begin)
		if err != nil {
			return 0, err
		}
		if !done {
			h.again = time.Now().Add(duty * time.Since(begin))
			return h.add(), nil
		}
	}
	for ino, f := range h.files {
		if f.pass != h.pass { // nobody has it open any more
			delete(h.files, ino)
		}
	}
	h.pid, h.offset = 0, 0
	h.again = time.Now().Add(max(heldPause, duty*time.Since(begin)))
	return h.add(), nil
}

func (h *held) add() uint64 {
	h.sum = 0
	for _, f := range h.files {
		h.sum += f.bytes
	}
	return h.sum
}

// scanOne looks at the descriptors of a process, from an offset on. It says no
// when it is to be gone on with later.
func (h *held) scanOne(s *Sampler, begin time.Time) (done bool, err error) {
	dir, err := unix.Openat(s.procFD, strconv.Itoa(h.pid)+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if isGone(err) {
		return true, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "open", Path: "/proc/PID/fd", Err: err}
	}
	defer unix.Close(dir)
	n := 0
	err = s.entries(dir, h.offset, func(name []byte, next int64) bool {
		if name[0] == '.' {
			return true
		}
		h.look(dir, string(name))
		h.offset = next
		n++
		return n%64 != 0 || time.Since(begin) < stretch
	})
	if err != nil && !isGone(err) {
		return false, &fs.PathError{Op: "readdir", Path: "/proc/PID/fd", Err: err}
	}
	return n%64 != 0 || n == 0 || time.Since(begin) < stretch, nil
}

// look asks for no more than is known of a file: it may be on a network.
func (h *held) look(dir int, name string) {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_BLOCKS, &st)
	if err == nil && unix.Mkdev(st.Dev_major, st.Dev_minor) == h.dev && st.Blocks > 0 {
		h.files[st.Ino] = heldFile{st.Blocks * 512, h.pass}
	}
}
