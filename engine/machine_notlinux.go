//go:build !linux || !(amd64 || arm64)

package engine

import "github.com/tegmen-dev/tegmen/workspace"

// What only Linux has.

type layers struct {
	*workspace.Overlay
	discard func() error
}

func asGuest(_ Host, _ identity, f func() error) error { return f() }

type landlock struct{ note string }

func (l landlock) in(func(string) string) landlock { return l }

func (p *Plan) decideLandlock(Host) { p.landlock.note = "none" }

const bareABI = 0

func (*Plan) decideBare(Host) {}
func startCalls() []string    { return nil }
