//go:build linux || darwin

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
)

// forwarded are the signals that the command gets in place of tegmen.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	syscall.SIGTSTP, syscall.SIGCONT,
}

const (
	sigWinch   = syscall.SIGWINCH
	sigSuspend = syscall.SIGTSTP
	sigResume  = syscall.SIGCONT
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

func terminalSize(f *os.File) (engine.WindowSize, error) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return engine.WindowSize{}, err
	}
	return engine.WindowSize{Rows: w.Row, Cols: w.Col}, nil
}

// rawMode passes every key on: the guest's terminal handles them.
func rawMode(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	old, err := unix.IoctlGetTermios(fd, tcGet)
	if err != nil {
		return func() {}, err
	}
	raw := *old
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, tcSet, &raw); err != nil {
		return func() {}, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, tcSet, old) }, nil // tegmen is about to exit
}

func killGroup(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }
