//go:build linux && (amd64 || arm64)

package procbox

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forkWatch is nothing: macOS has one.
type forkWatch struct{}

func watchForks(func()) (*forkWatch, error) { return nil, nil }
func (*forkWatch) add(int)                  {}
func (*forkWatch) close() error             { return nil }

// waitable returns when a child has ended, without reaping it.
func waitable(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// processTable is all processes, by pid. Who has just ended is left out.
func processTable() (map[int]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make(map[int]proc)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := procOf(pid)
		switch {
		case err == nil:
			all[pid] = p
		case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH):
			return nil, err // and nobody is taken for gone
		}
	}
	return all, nil
}

func procOf(pid int) (proc, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, err
	}
	// Behind the name in parentheses, which may have some itself: proc_pid_stat(5).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return proc{}, unix.ESRCH
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(fields[field-3], 10, 64) // the kernel writes numbers
		return n
	}
	return proc{
		pid: pid, parent: int(number(4)), group: int(number(5)), start: number(22),
		dead: fields[0] == "Z" || fields[0] == "X",
	}, nil
}
