//go:build !linux || !(amd64 || arm64)

package engine

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/workspace"
)

// This file is what an operating system has to supply to be one that sandboxes
// can be made on. Here there is none, and openMachine says so.

type (
	machine struct{}
	box     struct {
		timing Timing
		layers *layers
	}
	layers struct {
		*workspace.Overlay
		discard func() error
	}
	process struct{}

	landlock struct{ note string }
)

func (h *Host) scoped() (Host, error) { return *h, unsupported() }

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

func (*box) kill()         {}
func (*box) dying() bool   { return false }
func diskUse(string) Bytes { return 0 }

func (*box) enter()                                                      {}
func (*box) leave()                                                      {}
func (*box) guard(*Sandbox)                                              {}
func (*box) measure() reading                                            { return reading{} }
func (*box) full() []fullLimit                                           { return nil }
func (*box) hostOOM() bool                                               { return false }
func (*box) firstLook(watch) time.Duration                               { return time.Hour }
func (*box) look(watch) (sight, time.Duration)                           { return sight{}, time.Hour }
func (*box) wait() error                                                 { return nil }
func (*box) exec(execRequest) (*process, error)                          { return nil, unsupported() }
func (*box) terminal(WindowSize) (master, slave *os.File, err error)     { return nil, nil, unsupported() }
func (*process) started() error                                          { return unsupported() }
func (*process) timing() Timing                                          { return Timing{} }
func (*process) refused() []Refusal                                      { return nil }
func (*process) release() error                                          { return nil }
func (*process) setupError() error                                       { return unsupported() }
func (*process) signal(syscall.Signal, bool) error                       { return unsupported() }
func (*process) killTree() error                                         { return unsupported() }
func (*process) wait() (s syscall.WaitStatus, u syscall.Rusage, e error) { return s, u, unsupported() }
func resize(*os.File, WindowSize) error                                  { return unsupported() }
func searchPath(name string, _ []string) []string                        { return []string{name} }
func maxRSS(syscall.Rusage) Bytes                                        { return 0 }

// Calls lists the system calls of the plan, where there is something to start
// it.
func (*Plan) Calls() string { return "" }

const bareABI = 0

func (*Plan) decideBare(Host)       {}
func startCalls() []string          { return nil }
func (p *Plan) decideLandlock(Host) { p.landlock.note = "none" }

func (*machine) diagnose() []Finding { return nil }

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, unsupported() }
func readOnlyText(string) (*os.File, error)          { return nil, unsupported() }

func isUnixStream(*os.File) bool { return false }
