package mac

import (
	"syscall"

	"github.com/tegmen-dev/tegmen/engine"
)

func macHost() (engine.Host, error) { return engine.ProbeHost() }

// standIn is true if nothing is confined.
const standIn = false

// dup makes a descriptor that children inherit.
func dup(from, to int) error { return syscall.Dup2(from, to) }
