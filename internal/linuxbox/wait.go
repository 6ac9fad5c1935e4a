//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

func openPidfd(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, &launch.UnsupportedError{Feature: "pidfd_open with PIDFD_NONBLOCK", Since: "5.10", Err: err}
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// waitFor waits in the runtime's poller, without a thread, and reaps.
//
// A guest that traces a command gets its end reported first, and by not asking
// for it could keep it from us for ever. The tracer has one second to pass it on, and is then
// killed; if that does not help, giveUp ends the sandbox.
func waitFor(pidfd *os.File, pid int, giveUp func()) (status syscall.WaitStatus, usage syscall.Rusage, err error) {
	const patience, rounds = time.Second, 5
	conn, err := pidfd.SyscallConn()
	if err != nil {
		return 0, usage, err
	}
	for round := 0; ; round++ {
		pollErr := conn.Read(func(fd uintptr) bool {
			var got int
			for {
				got, err = syscall.Wait4(pid, &status, syscall.WNOHANG|unix.WALL, &usage)
				if err != syscall.EINTR {
					break
				}
			}
			if got == 0 && err == nil && ended(fd) {
				// It is dead, and not ours to reap.
				_ = pidfd.SetReadDeadline(time.Now().Add(patience)) // a pidfd has deadlines
			}
			return got == pid || err != nil
		})
		if !errors.Is(pollErr, os.ErrDeadlineExceeded) {
			return status, usage, errors.Join(pollErr, err)
		}
		if round < rounds {
			killTracer(pid)
		} else {
			giveUp()
		}
		if err := pidfd.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return status, usage, err
		}
	}
}

// ended reports whether the process of a pidfd has ended, reaped or not. It is
// asked outright: that the poller has woken us says so too, but not whether it
// would have, had we begun to wait earlier.
func ended(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n == 1
}

// killTracer kills the process that traces pid, if it is in a pid namespace of
// its own, as guests are: a debugger on the host is let be.
func killTracer(pid int) {
	tracer := tracerOf(pid)
	if tracer == 0 {
		return
	}
	fd, err := unix.PidfdOpen(tracer, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(fd)
	dir := fmt.Sprintf("/proc/%d/status", tracer)
	if len(fieldsOf(dir, "NSpid:")) > len(fieldsOf("/proc/self/status", "NSpid:")) && tracerOf(pid) == tracer {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it has ended
	}
}

// tracerOf is the process, of which any thread traces pid, or 0.
func tracerOf(pid int) int {
	thread := fieldsOf(fmt.Sprintf("/proc/%d/status", pid), "TracerPid:")
	if len(thread) != 1 || thread[0] == "0" {
		return 0
	}
	leader := fieldsOf("/proc/"+thread[0]+"/status", "Tgid:")
	if len(leader) != 1 {
		return 0
	}
	n, _ := strconv.Atoi(leader[0]) // the kernel writes numbers
	return n
}

// fieldsOf returns what a status file of /proc says behind a key; nothing when
// the process is gone.
func fieldsOf(file, key string) []string {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

// sendSignal cannot hit another process that has got the pid since. Its error
// is os.ErrProcessDone when the process has been reaped.
func sendSignal(pidfd *os.File, sig syscall.Signal) error { return sendSignalTo(pidfd, sig, 0) }

func sendSignalTo(pidfd *os.File, sig syscall.Signal, flags int) error {
	conn, err := pidfd.SyscallConn()
	if err != nil {
		return os.ErrProcessDone
	}
	closed := conn.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), sig, nil, flags) })
	if closed != nil || err == unix.ESRCH {
		return os.ErrProcessDone
	}
	return err
}
