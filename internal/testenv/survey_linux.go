package testenv

import (
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
)

// tryUserNamespace asks the kernel by making one.
func tryUserNamespace() error {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return cmd.Run()
}

// state is what there is at some time.
type state struct {
	fds, children []string
	mounts        string
	goroutines    goleak.Option // those there are
}

func survey() state {
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // compared only with itself
	return state{fds: descriptors(), children: children(), mounts: string(mounts), goroutines: goleak.IgnoreCurrent()}
}

// leaks lists what there is now and was not before. Goroutines and children
// that are just ending get a moment to do so.
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

// descriptors lists open ones by what they are, leaving out the runtime's.
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

// children lists the processes that this one has, dead or alive.
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
