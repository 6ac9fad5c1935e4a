//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
)

// LandlockOnly is a command that Landlock alone confines, under a reaper, where no
// namespaces can be had. It needs these descriptors besides those of the Command;
// they are the caller's and stay open until the program has run.
type LandlockOnly struct {
	ReaperFD  int // launch.Reaper
	ControlFD int // read end of the pipe through which the reaper gets the command's pid
	StatusFD  int // write end of the pipe to which the reaper reports the command's end
}

// Enter returns the program that starts the command. Its process becomes the
// reaper: a child of the host and the command's parent. The program uses clone and
// not clone3, and no other call that docker's default filter refuses.
//
// It makes two nested Landlock domains. The reaper is in the outer one, which only
// confines signals and connections: the reaper can signal what it has started and
// nothing else. The command is in the inner one as well, so it can neither signal
// the reaper nor trace anything outside.
func (l LandlockOnly) Enter(c Command) *Entry {
	outer := launch.NewProgram(64)
	outer.UseClone2()
	leaveHost(outer, c, l.ReaperFD, l.ControlFD, l.StatusFD)
	outer.Phase(launch.Confine)
	report, gate := placeDescriptors(outer, c, l.ControlFD, l.StatusFD, l.ReaperFD)
	control, status, reaper := gate+1, gate+2, gate+3
	// SIGTERM, which the reaper waits for, and not SIGKILL: it must take the
	// command's tree along.
	prctl(outer, "end with the host", unix.PR_SET_PDEATHSIG, int(unix.SIGTERM))
	prctl(outer, "adopt orphans", unix.PR_SET_CHILD_SUBREAPER, 1)
	prctl(outer, "no new privileges", unix.PR_SET_NO_NEW_PRIVS, 1)
	scope := ns.ScopeAbstract | ns.ScopeSignal
	restrictFiles(outer, ns.Ruleset{ABI: c.Landlock.ABI, TCP: true, Scope: scope, ScopeOnly: true})

	e := &Entry{Program: outer}
	inner := launch.NewProgram(96)
	e.PID = outer.Clone2("start command", 0, inner)
	closeRange(inner, "close the reaper's descriptors", control, reaper, 0)
	newSession(inner, c)
	dropPrivileges(inner).Try() // it may have no capability to begin with
	e.execGate(inner, c, report, gate)

	// From here on nothing may fail: the command runs.
	placeAt(outer, []int{control, status, reaper})
	closeOnExec(outer, 2)
	closeFrom(outer, 3)
	outer.FreeCPUs(outer)
	outer.Phase(launch.Exec)
	execImage(outer, "reaper", 2, []string{"tegmen-reaper"}, nil, 0)
	return e
}
