package testbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Alive lists the pids of processes of the host whose command line contains a marker, arguments divided by spaces.
func Alive(t testing.TB, marker string) (pids []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil &&
			bytes.Contains(bytes.ReplaceAll(b, []byte{0}, []byte(" ")), []byte(marker)) {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids
}

// KillInit kills pid 1 of each sandbox of this process, and returns when they are dead.
func KillInit(t testing.TB) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	child := regexp.MustCompile(fmt.Sprintf(`(?m)^PPid:\t%d$`, os.Getpid()))
	first := regexp.MustCompile(`(?m)^NSpid:\t.*\t1$`)
	killed := 0
	for _, name := range files {
		b, _ := os.ReadFile(name) // it may be gone
		if !child.Match(b) || !first.Match(b) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		killAndWait(t, pid)
		killed++
	}
	if killed == 0 {
		t.Fatal("no sandbox found")
	}
}

func killAndWait(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	dead := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for n, err := 0, error(nil); n == 0; {
		if n, err = unix.Poll(dead, int(Patience.Milliseconds())); err != nil && err != unix.EINTR || err == nil && n == 0 {
			t.Fatalf("it does not die: %v", err)
		}
	}
}
