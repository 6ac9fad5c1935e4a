package sample

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// countedTwice is how many bytes were counted for a child that has the same memory
// as its parent: after vfork(2), until it executes something. Who is one the kernel
// says (kcmp(2)), since a fork that wrote to all of its memory looks the same. Where
// it does not, nothing has been counted twice.
func (s *Sampler) countedTwice() (sum uint64, err error) {
	var host map[int]int
	for _, p := range s.known {
		parent := s.known[p.ppid]
		if parent == nil || p.rss == 0 || p.size != parent.size {
			continue
		}
		if host == nil {
			if host, err = s.hostPIDs(); err != nil {
				return 0, err
			}
		}
		if sameMemory(host[p.pid], host[parent.pid]) {
			sum += p.share.anon + p.share.shmem
		}
	}
	return sum, nil
}

func sameMemory(a, b int) bool {
	const vm = 1 // KCMP_VM
	if a == 0 || b == 0 {
		return false
	}
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), vm, 0, 0, 0)
	return errno == 0 && order == 0
}

// hostPIDs maps pids of the sandbox to the host's, which takes 6 µs for each
// process of the host.
func (s *Sampler) hostPIDs() (map[int]int, error) {
	host := make(map[int]int)
	if s.tree {
		for pid := range s.known {
			host[pid] = pid
		}
		return host, nil
	}
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		pid, ok := parsePID([]byte(e.Name()))
		if !ok {
			continue
		}
		n, err := readAt(unix.AT_FDCWD, "/proc/"+e.Name()+"/status", s.text)
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		inside, ok := lastPID(s.text[:n])
		var st unix.Stat_t
		if !ok || s.known[inside] == nil || unix.Stat("/proc/"+e.Name()+"/ns/pid", &st) != nil || st.Ino != s.space {
			continue
		}
		host[inside] = pid
	}
	return host, nil
}

// pidSpace is the number of the pid namespace of a process.
func pidSpace(pid int) (uint64, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/ns/pid"
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// lastPID reads from /proc/PID/status the pid that a process has in the innermost
// of its namespaces.
func lastPID(status []byte) (int, bool) {
	_, rest, ok := bytes.Cut(status, []byte("\nNSpid:"))
	if !ok {
		return 0, false
	}
	line, _, _ := strings.Cut(string(rest), "\n")
	f := strings.Fields(line)
	if len(f) < 2 {
		return 0, false // of the host's own
	}
	return parsePID([]byte(f[len(f)-1]))
}
