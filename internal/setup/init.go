//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Namespaces are those that every sandbox has for itself.
//
// There is no time namespace: setns(2) into one fails with EUSERS in a process
// that shares memory with another (Linux 5.6 and later), as all that launch
// programs start do.
const Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Config is what the programs of one sandbox are made from. The descriptors
// are the caller's and stay open until the programs have run.
type Config struct {
	Table    rootfs.Table
	IDs      ns.IDs
	Hostname string
	Name     string // of the sandbox, for who lists processes on the host

	ProcFD  int // the host's /proc, O_PATH: later steps have no path to it
	PauseFD int // launch.Pause
	PipeFD  int // read end of a pipe; pid 1 ends when nobody holds its write end

	// UpperFD is a Unix socket, to which the program sends the directory that
	// holds what is written to an overlay that is not the root and is in memory.
	UpperFD int

	Sources *Sources // nil: the programs open the host trees themselves
}

// An Init is a program that makes a sandbox, and what has to be checked before
// the sandbox is used.
type Init struct {
	Program *launch.Program
	Flags   uint64       // for launch.Spawner
	PID     *launch.Slot // of pid 1, as the host sees it; nil: it is the program's own process
	tree    *tree
}

// Verify returns an error when something else than the plan meant was mounted,
// because a path of the host was swapped in between.
func (i *Init) Verify() error { return i.tree.verify() }

// Direct makes a sandbox from nothing.
func Direct(c Config) *Init {
	p := launch.NewProgram(256)
	t := &tree{p: p, table: c.Table, upperFD: c.UpperFD}
	dieWithHost(p)
	idMaps(p, c.IDs, c.ProcFD)
	p.Phase(launch.Mounts)
	t.open(c.Table, c.Sources)
	t.enter()
	shared, own := c.Table.Split()
	for _, n := range own {
		if n.Kind == rootfs.Proc {
			// While the host's is still there: the kernel asks for one.
			t.proc(n.Path)
			t.hasProc = true
		}
	}
	t.leave()
	t.build(shared)
	t.build(own)
	t.seal()
	loopback(p)
	finish(p, p, c)
	return &Init{Program: p, Flags: Namespaces, tree: t}
}

// dieWithHost is the first step of pid 1, and with it everything in its pid
// namespace dies. When the host died before it, pid 1 finds its pipe closed.
func dieWithHost(p *launch.Program) {
	p.Do("die with the host", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_PDEATHSIG), launch.Int(unix.SIGKILL))
}

// finish ends the program of a pid 1.
func finish(p, outermost *launch.Program, c Config) {
	p.Phase(launch.Namespaces)
	p.Do("set hostname", c.Hostname, unix.SYS_SETHOSTNAME, p.Str(c.Hostname), launch.Int(len(c.Hostname)))
	p.Phase(launch.Confine)
	// Ignored across execve, so the kernel reaps the orphans that pid 1 gets.
	ignore := p.Words(1 /* SIG_IGN */, 0, 0, 0)
	p.Do("ignore SIGCHLD", "", unix.SYS_RT_SIGACTION, launch.Int(unix.SIGCHLD), ignore, launch.Int(0), launch.Int(8))
	keepOne(p)
	noPrivileges(p)
	// The pipe is at 0 and the image at 1, wherever they were: at 2 and above
	// nothing of the host's is left.
	place(p, []int{c.PipeFD, c.PauseFD})
	p.Do("close on exec", "", unix.SYS_FCNTL, launch.Int(1), launch.Int(unix.F_SETFD), launch.Int(unix.FD_CLOEXEC))
	p.Do("close the rest", "", unix.SYS_CLOSE_RANGE, launch.Int(2), launch.Int(^uint32(0)), launch.Int(0))
	p.FreeCPUs(outermost)
	p.Phase(launch.Exec)
	p.Do("exec", "init", unix.SYS_EXECVEAT, launch.Int(1), p.Str(""), p.Strings([]string{"tegmen-init", c.Name}), p.Strings(nil), launch.Int(unix.AT_EMPTY_PATH))
}

// loopback brings lo up; it is the only interface.
func loopback(p *launch.Program) {
	p.Phase(launch.Namespaces)
	fd := p.Do("open socket", "lo", unix.SYS_SOCKET, launch.Int(unix.AF_INET), launch.Int(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), launch.Int(0)).Slot()
	var req [40]byte // struct ifreq
	copy(req[:], "lo")
	req[unix.IFNAMSIZ] = unix.IFF_UP
	p.Do("bring up", "lo", unix.SYS_IOCTL, fd.Arg(), launch.Int(unix.SIOCSIFFLAGS), p.Bytes(req[:]))
	p.Do("close socket", "lo", unix.SYS_CLOSE, fd.Arg())
}

// securebits: uid 0 has no special power, and none of it can be undone
// (capabilities(7)).
const securebits = 1<<0 | 1<<1 | // NOROOT, locked
	1<<2 | 1<<3 | // NO_SETUID_FIXUP, locked
	1<<5 | // KEEP_CAPS stays off
	1<<6 | 1<<7 // NO_CAP_AMBIENT_RAISE, locked

// noPrivileges arranges that the execve to come leaves no capability, also for
// uid 0. The process keeps them until then: what protects the host's memory,
// which it shares, from being traced by a guest is that it has capabilities
// that the guest has not.
func noPrivileges(p *launch.Program) launch.Step {
	p.Do("no new privileges", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_NO_NEW_PRIVS), launch.Int(1), launch.Int(0), launch.Int(0), launch.Int(0))
	return p.Do("set securebits", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_SECUREBITS), launch.Int(securebits), launch.Int(0), launch.Int(0), launch.Int(0))
}

// keepOne leaves pid 1 a single capability, through its execve. It means next to
// nothing, but a guest has none, and so can never trace pid 1 nor see it in
// /proc, from its first instruction on: traced, it could be made to outlive the
// host.
func keepOne(p *launch.Program) {
	const harmless = unix.CAP_WAKE_ALARM
	const low, all = uint64(unix.LINUX_CAPABILITY_VERSION_3), ^uint64(0)
	// struct __user_cap_data_struct: effective, permitted, inheritable of the
	// lower 32 capabilities, then of the upper.
	data := p.Words(all, 0xffffffff<<32, 0xffffffff|1<<(harmless-32)<<32)
	p.Do("keep a capability", "", unix.SYS_CAPSET, p.Words(low), data)
	p.Do("keep a capability", "", unix.SYS_PRCTL, launch.Int(unix.PR_CAP_AMBIENT), launch.Int(unix.PR_CAP_AMBIENT_RAISE), launch.Int(harmless), launch.Int(0), launch.Int(0))
}

// place moves descriptors to 0, 1, 2, … in the calling process, without
// close-on-exec. Those in the way go above all targets first.
func place(p *launch.Program, fds []int) {
	from := make([]launch.Arg, len(fds))
	for i, fd := range fds {
		from[i] = launch.Int(fd)
		if fd < len(fds) {
			from[i] = p.Do("move descriptor", "", unix.SYS_FCNTL, launch.Int(fd), launch.Int(unix.F_DUPFD_CLOEXEC), launch.Int(len(fds))).Slot().Arg()
		}
	}
	for i := range fds {
		p.Do("place descriptor", "", unix.SYS_DUP3, from[i], launch.Int(i), launch.Int(0))
	}
}
