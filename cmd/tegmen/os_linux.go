package main

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	tcGet = unix.TCGETS
	tcSet = unix.TCSETS
)

// stopSelf sends this process a signal, and returns when it has arrived: it does at a thread
// before tgkill(2) returns there.
func stopSelf(sig syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig) // cannot fail
}

// ownGroup starts a command in its own process group. The command dies with tegmen: no
// thread that starts one ends before.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
