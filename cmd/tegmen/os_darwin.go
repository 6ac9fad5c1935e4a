package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	tcGet = unix.TIOCGETA
	tcSet = unix.TIOCSETA
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
