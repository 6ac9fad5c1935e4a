//go:build !linux && !darwin

package main

import (
	"errors"
	"os"
	"syscall"

	"github.com/tegmen-dev/tegmen/engine"
)

// This system has no sandboxes: engine.Open says so.

var forwarded = []os.Signal{os.Interrupt}

const sigWinch, sigSuspend, sigResume = syscall.Signal(0), syscall.Signal(0), syscall.Signal(0)

func (o *options) suspend(*engine.Cmd) {}

func isTerminal(*os.File) bool { return false }

func terminalSize(*os.File) (engine.WindowSize, error) {
	return engine.WindowSize{}, errors.ErrUnsupported
}

func rawMode(*os.File) (restore func(), err error) { return func() {}, errors.ErrUnsupported }

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(leader int) error {
	p, err := os.FindProcess(leader)
	if err != nil {
		return err
	}
	return p.Kill()
}

func openStream(string) (*os.File, error) { return nil, nil }
