//go:build linux && (amd64 || arm64)

package setup

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
)

// Command is a program to put into a sandbox. Its descriptors are the caller's and
// stay open until the program of its Entry has run.
type Command struct {
	InitFD int // pidfd of the sandbox's pid 1

	Paths []string // files to execute: the first that exists
	Argv  []string // with the name of the program first
	Env   []string // all of the environment: NAME=value
	Dir   string   // working directory inside, absolute
	Umask int      // permission bits that new files do not get

	FDs      []int // become 0, 1, 2, … of the command; at most 200
	Null     []int // which of them are the null device: the sandbox's own replaces the host's
	ReportFD int   // write end of a pipe, see Enter; a Unix socket if Filters.Audit is set
	GateFD   int   // launch.Gate
	Terminal bool  // FDs[0] becomes the controlling terminal

	Signals []unix.Signal // to reset: those that the host may ignore
	Rlimits []ns.Rlimit   // to set

	Landlock *ns.Ruleset // nil: none
	Filters  Filters     // seccomp; zero: none

	// Keyring names the session keyring to join in place of the host's: see
	// launch.Spawner.Keyring. "" joins none.
	Keyring string

	// CgroupFD is the directory of the cgroup to start in; 0 is the host's own.
	CgroupFD int
	// ShowCgroup is the path inside of a directory that is above a cgroup2 (rootfs.Node.Cgroup).
	// Another one is mounted there, whose root is the command's cgroup: Go's runtime believes
	// no other. "": none is. The command must be the first of its sandbox: for a moment any
	// could look into it.
	ShowCgroup string

	// Tagged gives the command a UTS namespace as its command tag. All its
	// descendants are in it and none can leave, so its process tree can be told
	// from those of other commands.
	Tagged bool
}

// An Entry is the program that starts a command.
type Entry struct {
	Program *launch.Program // for one use
	Flags   uint64          // CLONE_…, for launch.Spawner
	PID     *launch.Slot    // the command's pid as the host sees it; the host is the parent
}

// Enter returns the program that starts a command. Its process stays outside the
// sandbox's pid namespace and so out of any guest's reach. It joins the other
// namespaces and clones the command, which executes the gate, which executes the
// program that is wanted.
//
// The host may wait for the outer process. It must not wait for the command, which
// a guest can stop before it has executed anything, so the command is cloned
// without CLONE_VFORK. The exception is a command in a cgroup
// (launch.Program.StartInCgroup): the host must then be able to kill the sandbox
// while it waits.
//
// After that the other end of ReportFD reads end of file, or the errno of the
// execve; a command that has died also reads as end of file. Either way the
// program's memory is no longer in use.
func Enter(c Command) *Entry {
	outer := launch.NewProgram(64)
	leaveHost(outer, c, c.InitFD)
	setns(outer, "sandbox", c.InitFD, Namespaces)
	if c.CgroupFD > 0 {
		// Otherwise /proc/self/cgroup would tell the guest where its cgroup is, and
		// whose.
		outer.Do("hide cgroup", "", unix.SYS_UNSHARE, launch.Int(unix.CLONE_NEWCGROUP))
	}
	if c.ShowCgroup != "" {
		mountCgroupBelow(outer, c.ShowCgroup)
	}
	outer.Phase(launch.Confine)
	// Here and not in the command: a command that a guest has stopped then holds no
	// descriptor of the host's, so it cannot delay another's report.
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
	openNull(inner, c.Null)
	newSession(inner, c)
	// The gate keeps one capability, so that no guest can look at it.
	keepOneCapability(inner)
	dropPrivileges(inner)
	e.execGate(inner, c, report, gate)
	return e
}

// leaveHost begins the program of every command: it unshares the descriptor table,
// of which everything up to the highest descriptor in use is kept, and leaves the
// host's keyring.
func leaveHost(p *launch.Program, c Command, more ...int) {
	top := max(c.ReportFD, c.GateFD)
	for _, fd := range append(more, c.FDs...) {
		top = max(top, fd)
	}
	// The part that is not needed is not copied: a host with thousands of sandboxes
	// has thousands of descriptors.
	closeRange(p, "unshare descriptors", top+1, lastFD, unix.CLOSE_RANGE_UNSHARE)
	if c.Keyring != "" {
		// Before the namespaces are entered: each user namespace has its own names.
		join := launch.Int(unix.KEYCTL_JOIN_SESSION_KEYRING)
		p.Do("leave the host's keyring", "", unix.SYS_KEYCTL, join, p.Str(c.Keyring))
	}
}

// placeDescriptors resets signals, puts the command's descriptors in place and
// closes all others. The report and the gate come after the command's own, and
// extra after those. The gate and the last of extra are images: execve closes them.
func placeDescriptors(p *launch.Program, c Command, extra ...int) (report, gate int) {
	resetSignals(p, c.Signals)
	report, gate = len(c.FDs), len(c.FDs)+1
	placeAt(p, append(append(slices.Clone(c.FDs), c.ReportFD, c.GateFD), extra...))
	closeOnExec(p, gate)
	if len(extra) > 0 {
		closeOnExec(p, gate+len(extra))
	}
	closeFrom(p, gate+len(extra)+1)
	return report, gate
}

// openNull puts the sandbox's null device in place of the host's, which Landlock does
// not let a guest open again (/dev/stdin). In a root whose /dev somebody swaps
// meanwhile it is not found: then the host's stays.
func openNull(p *launch.Program, fds []int) {
	if len(fds) == 0 {
		return
	}
	const null = "/dev/null"
	own := openat2(p, "open", null, launch.Int(cwd), null, unix.O_RDWR|unix.O_CLOEXEC, noLinks).Try().Slot().Arg()
	for _, fd := range fds {
		p.Do("place descriptor", null, unix.SYS_DUP3, own, launch.Int(fd), launch.Int(0)).Try()
	}
	p.Do("close", null, unix.SYS_CLOSE, own).Try()
}

// newSession makes the calling process the leader of a new session, with the
// command's terminal, umask, directory and limits.
func newSession(p *launch.Program, c Command) {
	p.Phase(launch.Confine)
	// In a new session no terminal of the host's can be reached by /dev/tty, nor
	// typed into with TIOCSTI (CVE-2017-5226).
	p.Do("new session", "", unix.SYS_SETSID)
	if c.Terminal {
		p.Do("set terminal", "", unix.SYS_IOCTL, ints(0, unix.TIOCSCTTY)...)
	}
	p.Do("set umask", "", unix.SYS_UMASK, launch.Int(c.Umask))
	chdir(p, "change directory", c.Dir, c.Dir)
	for _, r := range c.Rlimits {
		limit := p.Words(r.Soft, r.Hard)
		p.Do("set limit", r.Name, unix.SYS_PRLIMIT64, launch.Int(0), launch.Int(Resource(r.Name)), limit)
	}
}

// execGate drops what is left of the process's privileges and executes the gate.
func (e *Entry) execGate(p *launch.Program, c Command, report, gate int) {
	for c := 0; c <= lastCap; c++ {
		prctl(p, "drop capability", unix.PR_CAPBSET_DROP, c).Try() // an older kernel does not know the last ones
	}
	p.FreeCPUs(e.Program)
	if c.Landlock != nil {
		restrictFiles(p, *c.Landlock)
	}
	c.Filters.install(p, report)
	p.Phase(launch.Exec)
	cookie := c.Filters.Cookie
	execImage(p, "gate", gate, launch.GateArgs(report, c.Paths, c.Argv), launch.GateEnv(cookie, c.Env), cookie.Arg())
}

// lastCap is CAP_CHECKPOINT_RESTORE (Linux 5.9), the newest capability.
const lastCap = unix.CAP_CHECKPOINT_RESTORE

// resetSignals undoes what the host ignores: CLONE_CLEAR_SIGHAND resets handlers,
// not SIG_IGN, and a guest started under nohup or from Python would inherit it.
func resetSignals(p *launch.Program, signals []unix.Signal) {
	action := p.Words(0 /* SIG_DFL */, 0, 0, 0)
	for _, sig := range signals {
		setSignal(p, "reset signal", sig, action)
	}
}

// Resource returns the number (RLIMIT_…) of a limit that ulimit calls name. It
// panics for a name that ns.Rlimit does not list.
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
	panic("setup: no limit " + name)
}

// Terminal returns a program that opens a new pseudo-terminal of the sandbox, and
// its clone flags. The slot receives the master end, in the host's descriptor
// table. The terminal must be from the sandbox's own devpts: the guest's end would
// otherwise have no name inside.
func Terminal(initFD int) (*launch.Program, uint64, *launch.Slot) {
	p := launch.NewProgram(2)
	setns(p, "sandbox", initFD, unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
	fd := openAt(p, "open terminal", "/dev/ptmx", cwd, "/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0).Slot()
	return p, unix.CLONE_FILES, fd
}

// SharedMemory returns a program that measures the sandbox's System V shared
// memory, attached or not. It fills in struct shm_info of shmctl(2), whose third
// word is the number of resident pages. /proc would show the shared memory of its
// reader's namespace.
func SharedMemory(initFD int) (p *launch.Program, flags uint64, info *[8]uint64) {
	const shmInfo = 14 // SHM_INFO
	p = launch.NewProgram(2)
	setns(p, "sandbox", initFD, unix.CLONE_NEWUSER|unix.CLONE_NEWIPC)
	info, at := launch.Out[[8]uint64](p)
	p.Do("query", "shared memory", unix.SYS_SHMCTL, launch.Int(0), launch.Int(shmInfo), at)
	return p, 0, info
}
