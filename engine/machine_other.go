//go:build !linux || !(amd64 || arm64)

package engine

import (
	"os"
	"runtime"
	"syscall"
)

// This file is what an operating system has to supply to be one that sandboxes
// can be made on. Here there is none, and openMachine says so.

type (
	machine struct{}
	box     struct{ timing Timing }
	process struct{}
)

func unsupported() error {
	return &UnsupportedError{Feature: "sandboxes on " + runtime.GOOS + "/" + runtime.GOARCH, Remedy: "Linux on amd64 or arm64 is needed"}
}

// ProbeHost finds out what this machine and account can do.
func ProbeHost() (Host, error) {
	return Host{OS: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}, nil
}

func openMachine(Host, Options) (*machine, error) { return nil, unsupported() }
func (*machine) close() error                     { return nil }
func (*machine) start(*Plan) (*box, error)        { return nil, unsupported() }

func (*box) kill()                                                       {}
func (*box) wait() error                                                 { return nil }
func (*box) exec(execRequest) (*process, error)                          { return nil, unsupported() }
func (*box) terminal(WindowSize) (master, slave *os.File, err error)     { return nil, nil, unsupported() }
func (*process) started() error                                          { return unsupported() }
func (*process) timing() Timing                                          { return Timing{} }
func (*process) release() error                                          { return nil }
func (*process) setupError() error                                       { return unsupported() }
func (*process) signal(syscall.Signal) error                             { return unsupported() }
func (*process) killTree() error                                         { return unsupported() }
func (*process) wait() (s syscall.WaitStatus, u syscall.Rusage, e error) { return s, u, unsupported() }
func resize(*os.File, WindowSize) error                                  { return unsupported() }
func searchPath(name string, _ []string) []string                        { return []string{name} }
func maxRSS(syscall.Rusage) Bytes                                        { return 0 }

// Calls lists the system calls of the plan, where there is something to start
// it.
func (*Plan) Calls() string { return "" }

func (*machine) diagnose() []Finding { return nil }

func isUnixStream(*os.File) bool { return false }
