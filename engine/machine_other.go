//go:build !darwin && (!linux || !(amd64 || arm64))

package engine

import (
	"os"
	"runtime"
	"syscall"
)

// Here is nothing that sandboxes can be made on, and openMachine says so.

func (h *Host) scoped() (Host, error) { return *h, unsupported() }

func unsupported() error {
	return &UnsupportedError{Feature: "sandboxes on " + runtime.GOOS + "/" + runtime.GOARCH, Remedy: "Linux on amd64 or arm64, or macOS, is needed"}
}

// ProbeHost finds out what this machine and account can do.
func ProbeHost() (Host, error) {
	return Host{OS: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}, nil
}

func openMachine(Host, Options) (machine, error) { return nil, unsupported() }

func diskUse(string) Bytes              { return 0 }
func resize(*os.File, WindowSize) error { return unsupported() }

// Calls lists how the sandbox is made, where it can be.
func (*Plan) Calls() string { return "" }

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, unsupported() }
func readOnlyText(string) (*os.File, error)          { return nil, unsupported() }

func isUnixStream(*os.File) bool { return false }

const (
	sigXCPU = syscall.Signal(24)
	sigXFSZ = syscall.Signal(25)
)

func readFD(uintptr, []byte) (int, error) { return 0, unsupported() }
