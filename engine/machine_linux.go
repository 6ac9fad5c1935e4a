//go:build amd64 || arm64

package engine

import (
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/linuxbox"
	"github.com/tegmen-dev/tegmen/internal/procbox"
)

func probe() (box.Host, error) { return linuxbox.Probe() }

// openMachines opens the machine of each level.
func openMachines(h box.Host, o Options) (*machines, error) {
	groups, err := procbox.Open(h)
	if err != nil {
		return nil, err
	}
	ms := &machines{best: groups, open: []box.Machine{groups}, byLevel: map[Level]box.Machine{LevelNone: groups}}
	if h.OS != "linux" { // of a test: what macOS has works here as well
		ms.byLevel[LevelSeatbelt] = groups
		return ms, nil
	}
	linux, err := linuxbox.Open(h, linuxbox.Options{NoTemplates: o.NoTemplates, CallersThread: o.CallersThread})
	if err != nil {
		_ = groups.Close() // nothing has been started
		return nil, err
	}
	ms.best, ms.open = linux, append(ms.open, linux)
	ms.byLevel[LevelNamespaces], ms.byLevel[LevelLandlock] = linux, linux.Landlock()
	return ms, nil
}

func systemdScope(h box.Host) (box.Host, error) { return linuxbox.Scope(h) }

func calls(level Level, c *box.Config, r box.Request, private string) string {
	switch level {
	case LevelNamespaces:
		return linuxbox.Calls(c, r)
	case LevelLandlock:
		return linuxbox.LandlockCalls(c, r, private)
	}
	return procbox.CommandLine(c, r, private)
}
