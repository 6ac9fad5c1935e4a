//go:build !linux || !(amd64 || arm64)

package engine

import (
	"os"
	"runtime"
	"syscall"

	"github.com/tegmen-dev/tegmen/workspace"
)

// Here is nothing that sandboxes can be made on, and openMachine says so.

type layers struct {
	*workspace.Overlay
	discard func() error
}

type landlock struct{ note string }

func (h *Host) scoped() (Host, error) { return *h, unsupported() }

func unsupported() error {
	return &UnsupportedError{Feature: "sandboxes on " + runtime.GOOS + "/" + runtime.GOARCH, Remedy: "Linux on amd64 or arm64 is needed"}
}

// ProbeHost finds out what this machine and account can do.
func ProbeHost() (Host, error) {
	return Host{OS: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}, nil
}

func openMachine(Host, Options) (machine, error) { return nil, unsupported() }

func diskUse(string) Bytes { return 0 }

func resize(*os.File, WindowSize) error           { return unsupported() }
func searchPath(name string, _ []string) []string { return []string{name} }
func maxRSS(syscall.Rusage) Bytes                 { return 0 }

// Calls lists the system calls of the plan, where there is something to start
// it.
func (*Plan) Calls() string { return "" }

const bareABI = 0

func (*Plan) decideBare(Host)       {}
func startCalls() []string          { return nil }
func (p *Plan) decideLandlock(Host) { p.landlock.note = "none" }

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, unsupported() }
func readOnlyText(string) (*os.File, error)          { return nil, unsupported() }

func isUnixStream(*os.File) bool { return false }
