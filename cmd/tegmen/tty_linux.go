package main

import "golang.org/x/sys/unix"

const (
	tcGet = unix.TCGETS
	tcSet = unix.TCSETS
)
