//go:build !darwin && !linux

package handoff

import (
	"io"
	"os"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// There are no sandboxes here, so nothing is ever handed over.

// Drain does nothing.
func Drain(io.Writer, *os.File) {}

// Resize always fails.
func Resize(*os.File, box.WindowSize) error { return unsupported("resize a terminal") }

// Channel always fails.
func Channel() (ours, theirs *os.File, err error) { return nil, nil, unsupported("make a channel") }

// Text always fails.
func Text(string) (*os.File, error) { return nil, unsupported("make a text") }

func isUnixStream(*os.File) bool { return false }
