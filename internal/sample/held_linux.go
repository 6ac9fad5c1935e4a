package sample

import (
	"errors"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// held finds the memfds that a sandbox holds by descriptors. Files on its tmpfs are
// counted there, whether or not they have a name.
//
// A scan inspects every descriptor of every process, 3 µs each. It is cut into stretches
// that use at most a twentieth of the time; each continues where the last one stopped.
type held struct {
	dev    uint64 // the kernel's internal tmpfs
	files  map[uint64]heldFile
	sum    uint64
	pass   uint64
	pid    int   // the process at which the next stretch begins,
	offset int64 // and the offset in its directory
	again  time.Time
}

type heldFile struct{ bytes, pass uint64 }

const (
	stretch   = 20 * time.Millisecond
	duty      = 20                    // a scan may use one part in this many of the time
	heldPause = 10 * time.Millisecond // the shortest pause between two stretches
)

// open finds out the device of memfds.
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

// scan does a stretch if one is due and returns how many bytes memfds hold, as last known.
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
		done, err := h.scanProcess(s, begin)
		if err != nil {
			return 0, err
		}
		if !done {
			h.again = time.Now().Add(duty * time.Since(begin))
			return h.add(), nil
		}
	}
	for ino, f := range h.files {
		if f.pass != h.pass { // no longer open
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

// scanProcess inspects the descriptors of a process from an offset on. It returns false if
// the stretch ended before.
func (h *held) scanProcess(s *Sampler, begin time.Time) (done bool, err error) {
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
		h.inspect(dir, string(name))
		h.offset = next
		n++
		return n%64 != 0 || time.Since(begin) < stretch
	})
	if err != nil && !isGone(err) {
		return false, &fs.PathError{Op: "readdir", Path: "/proc/PID/fd", Err: err}
	}
	return n%64 != 0 || n == 0 || time.Since(begin) < stretch, nil
}

// inspect adds a descriptor's file if it is a memfd. It does not sync attributes, since the
// file may be on a network.
func (h *held) inspect(dir int, name string) {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT,
		unix.STATX_TYPE|unix.STATX_INO|unix.STATX_BLOCKS, &st)
	if err == nil && unix.Mkdev(st.Dev_major, st.Dev_minor) == h.dev && st.Blocks > 0 {
		h.files[st.Ino] = heldFile{st.Blocks * 512, h.pass}
	}
}
