package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	tcGet = unix.TIOCGETA
	tcSet = unix.TIOCSETA
)

// stopSelf sends this process a signal.
func stopSelf(sig syscall.Signal) { _ = syscall.Kill(syscall.Getpid(), sig) } // cannot fail

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
