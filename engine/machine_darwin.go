package engine

import (
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/procbox"
)

func probe() (box.Host, error) { return procbox.Probe() }

// openMachines opens the machine of each level.
func openMachines(h box.Host, _ Options) (*machines, error) {
	groups, err := procbox.Open(h)
	if err != nil {
		return nil, err
	}
	return &machines{best: groups, open: []box.Machine{groups},
		byLevel: map[Level]box.Machine{LevelSeatbelt: groups, LevelNone: groups}}, nil
}

func systemdScope(h box.Host) (box.Host, error) {
	return h, &UnsupportedError{Feature: "a systemd scope on " + h.OS}
}

func calls(_ Level, c *box.Config, r box.Request, private string) string {
	return procbox.CommandLine(c, r, private)
}
