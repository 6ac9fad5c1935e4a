package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func theView() view {
	return view{
		mounts: readText("/proc/self/mountinfo"), self: readText("/proc/self/cgroup"), read: readText,
		writable: func(names ...string) error {
			for _, name := range names {
				if err := unix.Faccessat(unix.AT_FDCWD, name, unix.W_OK, unix.AT_EACCESS); err != nil {
					return &fs.PathError{Op: "write", Path: filepath.Base(name), Err: err}
				}
			}
			return nil
		},
		others: func(dir string) []int {
			pids := processes(dir)
			return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() })
		},
	}
}

// processes lists the pids in a cgroup; 0 stands for a process outside this pid
// namespace.
func processes(dir string) (pids []int) {
	for _, word := range strings.Fields(readText(dir + "/cgroup.procs")) {
		pid, _ := strconv.Atoi(word) // the kernel writes numbers
		pids = append(pids, pid)
	}
	return pids
}

func readText(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}
