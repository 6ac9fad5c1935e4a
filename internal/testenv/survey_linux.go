package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// tryUserNamespace makes a user namespace.
func tryUserNamespace() error {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return cmd.Run()
}

// tryCgroup makes a cgroup and removes it. It enables no controllers: this process would have to leave its own cgroup
// first.
func tryCgroup() error {
	const root = "/sys/fs/cgroup"
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	_, path, found := strings.Cut("\n"+string(text), "\n0::") // see cgroups(7)
	if !found {
		return errors.New("no cgroups of version 2")
	}
	path, _, _ = strings.Cut(path, "\n")
	dir := filepath.Join(root, path)
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, want := range []string{"memory", "pids"} {
		if !slices.Contains(strings.Fields(string(controllers)), want) {
			return fmt.Errorf("%s has not the controller %s but %s", dir, want, strings.TrimSpace(string(controllers)))
		}
	}
	for _, name := range []string{"cgroup.procs", "cgroup.subtree_control"} {
		if err := unix.Access(filepath.Join(dir, name), unix.W_OK); err != nil {
			return &os.PathError{Op: "write", Path: filepath.Join(dir, name), Err: err}
		}
	}
	child, err := os.MkdirTemp(dir, "tegmen-test-")
	if err != nil {
		return err
	}
	return os.Remove(child)
}

func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

func nosuid(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Flags&unix.ST_NOSUID != 0
}

// state is what this process has at some time.
type state struct {
	fds, children []string
	mounts        string
	goroutines    goleak.Option // those there are
}

func survey() state {
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // compared only with itself
	return state{fds: descriptors(), children: children(), mounts: string(mounts), goroutines: goleak.IgnoreCurrent()}
}

// leaks lists what is there now and was not before. Goroutines and children get a moment to end.
func (s state) leaks() (leaks []string) {
	deadline := time.Now().Add(3 * time.Second)
	for {
		leaks = s.compare(survey())
		if len(leaks) == 0 || time.Now().After(deadline) {
			return leaks
		}
		runtime.GC() // an *os.File that nobody holds closes itself
		time.Sleep(10 * time.Millisecond)
	}
}

func (s state) compare(now state) (leaks []string) {
	for _, fd := range now.fds {
		if !slices.Contains(s.fds, fd) {
			leaks = append(leaks, "descriptor "+fd)
		}
	}
	for _, c := range now.children {
		if !slices.Contains(s.children, c) {
			leaks = append(leaks, "child "+c)
		}
	}
	if now.mounts != s.mounts {
		leaks = append(leaks, "a mount")
	}
	if err := goleak.Find(s.goroutines); err != nil {
		leaks = append(leaks, err.Error())
	}
	return leaks
}

// descriptors lists the open descriptors and their targets, without the runtime's.
func descriptors() (list []string) {
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return nil
	}
	for _, name := range names {
		to, err := os.Readlink(name)
		if err != nil || strings.HasPrefix(to, "anon_inode:[event") {
			continue // closed since, or the runtime's poller
		}
		list = append(list, filepath.Base(name)+" "+to)
	}
	return list
}

// children lists the children of this process, dead or alive.
func children() (list []string) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // ended since
		}
		// pid (comm) state ppid …; comm may contain anything.
		text := string(b)
		rest := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(rest) > 1 && rest[1] == strconv.Itoa(os.Getpid()) {
			list = append(list, strings.TrimSpace(text[:strings.LastIndexByte(text, ')')+1])+" "+rest[0])
		}
	}
	return list
}
