//go:build linux && (amd64 || arm64)

package setup

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
)

// Command is a program to put into a sandbox.
type Command struct {
	InitFD int // pidfd of the sandbox's pid 1

	Paths []string // what to execute: the first that exists
	Argv  []string
	Env   []string
	Dir   string // inside, absolute
	Umask int

	FDs      []int // become 0, 1, 2, … of the command; at most 200
	ReportFD int   // write end of a pipe; see Enter
	GateFD   int   // launch.Gate
	Terminal bool  // FDs[0] is the controlling terminal

	Signals []unix.Signal // that the host may ignore
	Rlimits []ns.Rlimit

	Landlock *ns.Ruleset // nil: none
	Filters  Filters

	// Keyring is the session keyring to leave the host's for, as
	// launch.Spawner.Keyring names it; "" when there is none.
	Keyring string

	// CgroupFD is the directory of the cgroup to start in; 0 is the host's own.
	CgroupFD int

	// Tagged gives the command a UTS namespace of its own, which all that
	// descend from it are in and none can leave: its process tree can be told
	// from those of other commands.
	Tagged bool
}

// An Entry is the program that starts a command.
type Entry struct {
	Program *launch.Program
	Flags   uint64
	PID     *launch.Slot // as the host sees it; the host is the parent
}

// Enter returns the program. Its process, outside the sandbox's pid namespace
// and so out of any guest's reach, joins the other namespaces and clones the
// command. The host may wait for that process, but not for the command, which
// a guest can stop before it has executed anything: the command is cloned
// without CLONE_VFORK, but for one in a cgroup (launch.Program.StartInCgroup), where
// the host has to be able to kill the sandbox while it waits. It executes the
// gate, and that the command. The other end
// of ReportFD then reads as at its end, or yields the errno of the execve. At its
// end, too, when the command has died: either way the program's memory is no
// longer used.
func Enter(c Command) *Entry {
	outer := launch.NewProgram(64)
	leaveHost(outer, c, c.InitFD)
	outer.Do("enter", "sandbox", unix.SYS_SETNS, launch.Int(c.InitFD), launch.Int(Namespaces))
	if c.CgroupFD > 0 {
		// Or the guest would read in /proc/self/cgroup where its cgroup is, and
		// whose.
		outer.Do("hide cgroup", "", unix.SYS_UNSHARE, launch.Int(unix.CLONE_NEWCGROUP))
	}
	outer.Phase(launch.Confine)
	// All here and not in the command: a command that a guest has stopped holds
	// nothing of the host's, so it cannot delay another's report.
	report, gate := placeDescriptors(outer, c)
	outer.Phase(launch.Namespaces)

	e := &Entry{Program: outer, Flags: unix.CLONE_FILES}
	inner := launch.NewProgram(96)
	flags := uint64(unix.CLONE_PARENT)
	if c.Tagged {
		flags |= unix.CLONE_NEWUTS
	}
	if c.CgroupFD > 0 {
		outer.StartInCgroup(c.CgroupFD)
		flags |= unix.CLONE_VFORK
	}
	e.PID = outer.Clone("start command", launch.CloneArgs{Flags: flags}, inner)
	session(inner, c)
	// The gate keeps one capability, so that no guest can look at it.
	keepOne(inner)
	noPrivileges(inner)
	e.execGate(inner, c, report, gate)
	return e
}

// leaveHost is how the programs of all commands begin: with a descriptor table of
// their own, which still has everything up to the highest one in use, and without
// the host's keyring.
func leaveHost(p *launch.Program, c Command, more ...int) {
	top := max(c.ReportFD, c.GateFD)
	for _, fd := range append(more, c.FDs...) {
		top = max(top, fd)
	}
	// A table of its own, without copying the part that is not needed: a host
	// with thousands of sandboxes has thousands of descriptors.
	p.Do("unshare descriptors", "", unix.SYS_CLOSE_RANGE, launch.Int(top+1), launch.Int(^uint32(0)), launch.Int(unix.CLOSE_RANGE_UNSHARE))
	if c.Keyring != "" {
		// Before the namespaces are entered: names are each user namespace's own.
		p.Do("leave the host's keyring", "", unix.SYS_KEYCTL, launch.Int(unix.KEYCTL_JOIN_SESSION_KEYRING), p.Str(c.Keyring))
	}
}

// placeDescriptors resets signals, puts the command's descriptors in place and
// closes all others. The report and the gate come after the command's own, and extra
// after those. The gate, and the last of extra, are images: execve closes them.
func placeDescriptors(p *launch.Program, c Command, extra ...int) (report, gate int) {
	defaultSignals(p, c.Signals)
	report, gate = len(c.FDs), len(c.FDs)+1
	place(p, append(append(slices.Clone(c.FDs), c.ReportFD, c.GateFD), extra...))
	onExec := []int{gate}
	if len(extra) > 0 {
		onExec = append(onExec, gate+len(extra))
	}
	for _, fd := range onExec {
		p.Do("close on exec", "", unix.SYS_FCNTL, launch.Int(fd), launch.Int(unix.F_SETFD), launch.Int(unix.FD_CLOEXEC))
	}
	p.Do("close the rest", "", unix.SYS_CLOSE_RANGE, launch.Int(gate+len(extra)+1), launch.Int(^uint32(0)), launch.Int(0))
	return report, gate
}

// session makes the calling process one of its own, within its limits.
func session(p *launch.Program, c Command) {
	p.Phase(launch.Confine)
	// A session of its own: no terminal of the host's can be reached by
	// /dev/tty, nor typed into with TIOCSTI (CVE-2017-5226).
	p.Do("new session", "", unix.SYS_SETSID)
	if c.Terminal {
		p.Do("set terminal", "", unix.SYS_IOCTL, launch.Int(0), launch.Int(unix.TIOCSCTTY), launch.Int(0))
	}
	p.Do("set umask", "", unix.SYS_UMASK, launch.Int(c.Umask))
	p.Do("change directory", c.Dir, unix.SYS_CHDIR, p.Str(c.Dir))
	for _, r := range c.Rlimits {
		p.Do("set limit", r.Name, unix.SYS_PRLIMIT64, launch.Int(0), launch.Int(Resource(r.Name)), p.Words(r.Soft, r.Hard), launch.Int(0))
	}
}

// execGate gives up what is left and executes.
func (e *Entry) execGate(p *launch.Program, c Command, report, gate int) {
	for c := 0; c <= lastCap; c++ {
		// An older kernel does not know the last ones.
		p.Do("drop capability", "", unix.SYS_PRCTL, launch.Int(unix.PR_CAPBSET_DROP), launch.Int(c), launch.Int(0), launch.Int(0), launch.Int(0)).Try()
	}
	p.FreeCPUs(e.Program)
	if c.Landlock != nil {
		restrictFiles(p, *c.Landlock)
	}
	c.Filters.install(p, report)
	p.Phase(launch.Exec)
	p.Do("exec", "gate", unix.SYS_EXECVEAT, launch.Int(gate), p.Str(""), p.Strings(launch.GateArgs(report, c.Paths, c.Argv)), p.Strings(launch.GateEnv(c.Filters.Cookie, c.Env)),
		launch.Int(unix.AT_EMPTY_PATH), launch.Int(c.Filters.Cookie.Arg()))
}

// lastCap is CAP_CHECKPOINT_RESTORE (Linux 5.9), the newest there is.
const lastCap = unix.CAP_CHECKPOINT_RESTORE

// defaultSignals undoes what the host ignores: CLONE_CLEAR_SIGHAND resets
// handlers, not SIG_IGN, and a guest started under nohup or from Python would
// inherit it.
func defaultSignals(p *launch.Program, signals []unix.Signal) {
	act := p.Words(0 /* SIG_DFL */, 0, 0, 0)
	for _, sig := range signals {
		p.Do("reset signal", "", unix.SYS_RT_SIGACTION, launch.Int(sig), act, launch.Int(0), launch.Int(8))
	}
}

// Resource is the number of a limit that ulimit calls name.
func Resource(name string) int {
	switch name {
	case "as":
		return unix.RLIMIT_AS
	case "core":
		return unix.RLIMIT_CORE
	case "cpu":
		return unix.RLIMIT_CPU
	case "fsize":
		return unix.RLIMIT_FSIZE
	case "memlock":
		return unix.RLIMIT_MEMLOCK
	case "nice":
		return unix.RLIMIT_NICE
	case "nofile":
		return unix.RLIMIT_NOFILE
	case "nproc":
		return unix.RLIMIT_NPROC
	case "rtprio":
		return unix.RLIMIT_RTPRIO
	}
	panic("ns: no limit " + name)
}

// Terminal returns a program that opens a new pseudo-terminal of the sandbox:
// the slot holds its master end, in the host's descriptor table. It has to be
// the sandbox's own devpts, or the guest's end would have no name inside.
func Terminal(initFD int) (*launch.Program, uint64, *launch.Slot) {
	p := launch.NewProgram(2)
	p.Do("enter", "sandbox", unix.SYS_SETNS, launch.Int(initFD), launch.Int(unix.CLONE_NEWUSER|unix.CLONE_NEWNS))
	fd := p.Do("open terminal", "/dev/ptmx", unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), p.Str("/dev/pts/ptmx"), launch.Int(unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC), launch.Int(0)).Slot()
	return p, unix.CLONE_FILES, fd
}

// SharedMemory returns a program that fills in what System V shared memory the
// sandbox has, attached anywhere or not: struct shm_info of shmctl(2), whose third
// word is the resident pages. /proc would show that of its reader's namespace.
func SharedMemory(initFD int) (p *launch.Program, flags uint64, info *[8]uint64) {
	const shmInfo = 14 // SHM_INFO
	p = launch.NewProgram(2)
	p.Do("enter", "sandbox", unix.SYS_SETNS, launch.Int(initFD), launch.Int(unix.CLONE_NEWUSER|unix.CLONE_NEWIPC))
	info, at := launch.Out[[8]uint64](p)
	p.Do("query", "shared memory", unix.SYS_SHMCTL, launch.Int(0), launch.Int(shmInfo), at)
	return p, 0, info
}
