//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
)

// LandlockOnly is what a command without namespaces needs besides.
type LandlockOnly struct {
	ReaperFD  int // launch.Reaper
	ControlFD int // read end of the pipe through which the reaper gets the command's pid
	StatusFD  int // write end of the one that it reports the command's end to
}

// Enter returns the program that starts a command where there are no namespaces
// to be had. Its process becomes the command's parent, the reaper, whose parent
// is the host. It uses nothing that docker's default filter refuses: clone, and
// not clone3.
//
// There are two Landlock domains, one in the other. The reaper is in the outer
// one, which only keeps signals and connections in: it can signal what it has
// started and nothing else. The command is in the inner one as well, so it cannot
// signal the reaper, nor trace anything outside.
func (b LandlockOnly) Enter(c Command) *Entry {
	outer := launch.NewProgram(64)
	outer.UseClone2()
	leaveHost(outer, c, b.ReaperFD, b.ControlFD, b.StatusFD)
	outer.Phase(launch.Confine)
	report, gate := placeDescriptors(outer, c, b.ControlFD, b.StatusFD, b.ReaperFD)
	control, status, reaper := gate+1, gate+2, gate+3
	// SIGTERM, which the reaper waits for, and not SIGKILL: it has to take the
	// command's tree along.
	outer.Do("end with the host", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_PDEATHSIG), launch.Int(unix.SIGTERM))
	outer.Do("adopt orphans", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_CHILD_SUBREAPER), launch.Int(1), launch.Int(0), launch.Int(0), launch.Int(0))
	outer.Do("no new privileges", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_NO_NEW_PRIVS), launch.Int(1), launch.Int(0), launch.Int(0), launch.Int(0))
	restrictFiles(outer, ns.Ruleset{ABI: c.Landlock.ABI, TCP: true, Scope: ns.ScopeAbstract | ns.ScopeSignal, ScopeOnly: true})

	e := &Entry{Program: outer}
	inner := launch.NewProgram(96)
	e.PID = outer.Clone2("start command", 0, inner)
	inner.Do("close the reaper's descriptors", "", unix.SYS_CLOSE_RANGE, launch.Int(control), launch.Int(reaper), launch.Int(0))
	session(inner, c)
	noPrivileges(inner).Try() // it may have no capability to begin with
	e.execGate(inner, c, report, gate)

	// From here on nothing may fail: the command runs.
	place(outer, []int{control, status, reaper})
	outer.Do("close on exec", "", unix.SYS_FCNTL, launch.Int(2), launch.Int(unix.F_SETFD), launch.Int(unix.FD_CLOEXEC))
	outer.Do("close the rest", "", unix.SYS_CLOSE_RANGE, launch.Int(3), launch.Int(^uint32(0)), launch.Int(0))
	outer.FreeCPUs(outer)
	outer.Phase(launch.Exec)
	outer.Do("exec", "reaper", unix.SYS_EXECVEAT, launch.Int(2), outer.Str(""), outer.Strings([]string{"tegmen-reaper"}), outer.Strings(nil), launch.Int(unix.AT_EMPTY_PATH))
	return e
}
