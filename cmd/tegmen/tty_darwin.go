package main

import "golang.org/x/sys/unix"

const (
	tcGet = unix.TIOCGETA
	tcSet = unix.TIOCSETA
)
