//go:build linux && (amd64 || arm64)

package mac

import (
	"syscall"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// macHost is this machine without what only Linux has, and with the stand-in.
func macHost() (engine.Host, error) {
	h, err := engine.ProbeHost()
	if err != nil {
		return h, err
	}
	h.Home = "/Users/u"
	err = testbox.AsMac(&h)
	return h, err
}

// standIn is true if nothing is confined.
const standIn = true

// dup makes a descriptor that children inherit.
func dup(from, to int) error { return syscall.Dup3(from, to, 0) }
