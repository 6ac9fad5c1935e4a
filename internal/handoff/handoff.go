// Package handoff makes descriptors to be handed to a guest, and judges those that
// a caller wants to hand over: a guest can do more with a descriptor than read and
// write.
package handoff

import (
	"fmt"
	"os"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// Safe reports whether a file can be given to a guest as it is; otherwise its
// content must be copied through a pipe. An error is what cannot be copied either.
//
// A guest can open a descriptor again through /proc/self/fd with the access that
// its user has, change its mode, or, from a directory, walk the whole host (the
// attack of CVE-2024-21626). Only what gives nothing more is safe: pipes, connected
// Unix stream sockets and the null device.
func Safe(f *os.File) (bool, error) {
	if f == nil {
		return false, box.Invalid("a nil file as a standard stream")
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	switch mode := info.Mode(); {
	case mode&os.ModeNamedPipe != 0, isNull(info), mode&os.ModeSocket != 0 && isUnixStream(f):
		return true, nil
	case mode.IsDir():
		return false, box.Invalid("standard stream %s is a directory, from which a guest could walk out of its sandbox",
			f.Name())
	case mode.IsRegular(), mode&(os.ModeCharDevice|os.ModeSocket) != 0:
		return false, nil
	default:
		return false, box.Invalid("standard stream %s is a %s: want a file, a pipe, a socket or a terminal",
			f.Name(), mode.Type())
	}
}

// IsNull reports whether f is the null device.
func IsNull(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && isNull(info)
}

// isNull compares with the null device, which has no content to protect.
func isNull(info os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// unsupported is the error of systems without sandboxes.
func unsupported(what string) error { return fmt.Errorf("%s: %w", what, os.ErrInvalid) }
