//go:build !darwin && (!linux || !(amd64 || arm64))

package engine

import (
	"os"
	"runtime"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// No sandbox can be made here, and openMachines says so.

func unsupported() error {
	return &UnsupportedError{Feature: "sandboxes on " + runtime.GOOS + "/" + runtime.GOARCH,
		Remedy: "Linux on amd64 or arm64, or macOS, is needed"}
}

func probe() (box.Host, error) {
	return box.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}, nil
}

func openMachines(box.Host, Options) (*machines, error) { return nil, unsupported() }

func systemdScope(h box.Host) (box.Host, error) { return h, unsupported() }

func calls(Level, *box.Config, box.Request, string) string { return "" }
