package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	tcGet = unix.TCGETS
	tcSet = unix.TCSETS
)

// ownGroup starts a command in its own process group. The command dies with tegmen: no
// thread that starts one ends before.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
