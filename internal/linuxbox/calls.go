//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"fmt"
	"path"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Calls lists the system calls that make the sandbox, when it is made from
// nothing, and that put a command into it. The host's descriptors have example
// numbers.
func Calls(c *box.Config, r box.Request) string {
	const procFD, pauseFD, pipeFD, initFD = 4, 5, 6, 10
	command, err := exampleCommand(c, r)
	if err != nil {
		return err.Error()
	}
	command.InitFD = initFD
	all := protect.Mount(c.Table, c.Placeholders, func(d protect.Dir, p protect.Placeholder) (rootfs.Source, bool) {
		return rootfs.Source{Path: path.Join(d.Source.Path, p.Name), Identity: rootfs.Identity{Dir: !p.File}}, true
	})
	init := setup.Direct(setup.Config{
		Table: all, Layout: all.Layout(), IDs: c.IDs, Hostname: c.Hostname,
		ProcFD: procFD, PauseFD: pauseFD, PipeFD: pipeFD,
	})
	enter := setup.Enter(command)
	return fmt.Sprintf("# sandbox: clone3(flags 0x%x, sharing memory), and in the child:\n%s\n"+
		"# command: clone3(flags 0x%x, sharing memory), and in the child:\n%s",
		init.Flags|unix.CLONE_VM|unix.CLONE_VFORK, init.Program, enter.Flags|unix.CLONE_VM|unix.CLONE_VFORK, enter.Program)
}

// LandlockCalls is Calls for a sandbox without namespaces, whose private directory
// is dir.
func LandlockCalls(c *box.Config, r box.Request, dir string) string {
	const reaperFD, controlFD, statusFD = 5, 6, 10
	command, err := exampleCommand(withPrivate(c, dir), r)
	if err != nil {
		return err.Error()
	}
	command.Tagged = c.KillAlone
	e := setup.LandlockOnly{ReaperFD: reaperFD, ControlFD: controlFD, StatusFD: statusFD}.Enter(command)
	return fmt.Sprintf("# command: clone(sharing memory), and in the child:\n%s", e.Program)
}

func exampleCommand(c *box.Config, r box.Request) (setup.Command, error) {
	const nullFD, reportFD, gateFD = 8, 9, 11
	f, err := filters(c, runtime.GOARCH)
	return setup.Command{
		Landlock: c.Landlock, Filters: f, Paths: r.Paths, Argv: r.Argv, Env: r.Env, Dir: r.Dir, Umask: c.Umask,
		FDs: []int{nullFD, nullFD, nullFD}, ReportFD: reportFD, GateFD: gateFD,
		Signals: launch.IgnorableSignals(), Keyring: "tegmen-…", Rlimits: c.Rlimits, Tagged: c.KillAlone,
	}, err
}
