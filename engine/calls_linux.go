//go:build linux && (amd64 || arm64)

package engine

import (
	"fmt"
	"path"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Calls lists the very system calls that make the sandbox, when it is made
// from nothing, and that put a command, "PROGRAM", into it.
// The host's descriptors have example numbers.
//
// For LevelSeatbelt, and for LevelNone where Linux has no part in it, it is the
// command line that starts a command, and the profile.
func (p *Plan) Calls() string {
	if p.plain() {
		return p.commandLine()
	}
	const procFD, pauseFD, pipeFD, nullFD, reportFD, initFD, gateFD = 4, 5, 6, 8, 9, 10, 11
	filters, err := p.filters(runtime.GOARCH)
	if err != nil {
		return err.Error()
	}
	command := setup.Command{
		Landlock: p.landlock.rules, Filters: filters,
		InitFD: initFD, Paths: searchPath("PROGRAM", p.Env), Argv: []string{"PROGRAM"}, Env: p.Env, Dir: p.Dir, Umask: umask,
		FDs: []int{nullFD, nullFD, nullFD}, ReportFD: reportFD, GateFD: gateFD, Signals: launch.IgnorableSignals(), Keyring: "tegmen-…", Rlimits: p.nsRlimits(), Tagged: p.Spec.Keep,
	}
	if p.bare() {
		e := setup.LandlockOnly{ReaperFD: pauseFD, ControlFD: pipeFD, StatusFD: initFD}.Enter(command)
		return fmt.Sprintf("# command: clone(sharing memory), and in the child:\n%s", e.Program)
	}
	all := p.withGhosts(func(d *ghostDir, g ghost) (rootfs.Source, bool) {
		return rootfs.Source{Path: path.Join(d.dir.Path, g.name), Identity: rootfs.Identity{Dir: !g.file}}, true
	})
	init := setup.Direct(setup.Config{
		Table: all, IDs: p.ids.ns(), Hostname: p.hostname,
		ProcFD: procFD, PauseFD: pauseFD, PipeFD: pipeFD,
	})
	enter := setup.Enter(command)
	return fmt.Sprintf("# sandbox: clone3(flags 0x%x, sharing memory), and in the child:\n%s\n# command: clone3(flags 0x%x, sharing memory), and in the child:\n%s",
		init.Flags|unix.CLONE_VM|unix.CLONE_VFORK, init.Program, enter.Flags|unix.CLONE_VM|unix.CLONE_VFORK, enter.Program)
}

func (id identity) ns() ns.IDs {
	return ns.IDs{UID: id.uid, GID: id.gid, HostUID: id.hostUID, HostGID: id.hostGID}
}

func (p *Plan) nsRlimits() []ns.Rlimit {
	out := make([]ns.Rlimit, len(p.rlimits))
	for i, l := range p.rlimits {
		out[i] = ns.Rlimit{Name: l.name, Soft: l.soft, Hard: l.hard}
	}
	return out
}
