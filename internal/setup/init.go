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
// that shares memory with another (Linux 5.6 and later), as every process of a
// launch program does.
const Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Config describes one sandbox to the programs that make it. The descriptors are
// the caller's and stay open until the programs have run.
type Config struct {
	Table    rootfs.Table   // the mounts; its first node is the root
	Layout   *rootfs.Layout // the Table's
	IDs      ns.IDs         // the sandbox's user
	Hostname string         // inside
	Name     string         // the sandbox's name in the host's list of processes; may be empty

	ProcFD  int // the host's /proc, O_PATH: later steps have no path to it
	PauseFD int // launch.Pause
	PipeFD  int // read end of a pipe; pid 1 ends when nobody holds its write end

	// UpperFD is a Unix socket. If an overlay that is not the root is kept in
	// memory, the program sends it the directory that holds what is written.
	UpperFD int

	Sources *Sources // nil: the programs open the host trees themselves
}

// An Init is a program that makes a sandbox. Verify must pass before the sandbox is
// used.
type Init struct {
	Program *launch.Program // for one use
	Flags   uint64          // CLONE_…, for launch.Spawner
	PID     *launch.Slot    // of pid 1, as the host sees it; nil: it is the program's own process
	tree    *tree
}

// Verify returns an error if a path of the host was swapped after the plan was
// made, so that something else was mounted.
func (i *Init) Verify() error { return i.tree.verify() }

// Direct makes a sandbox from nothing.
func Direct(c Config) *Init {
	p := launch.NewProgram(256)
	t := newTree(p, c)
	t.upperFD = c.UpperFD
	dieWithHost(p)
	writeIDMaps(p, c.IDs, c.ProcFD)
	p.Phase(launch.Mounts)
	t.open(c.Layout.Outer(), c.Sources)
	t.enter()
	for _, n := range c.Layout.Own {
		if n.Kind == rootfs.Proc {
			// While the host's procfs is still there: the kernel requires one.
			t.mountProc(n.Path)
			t.hasProc = true
		}
	}
	t.leave()
	t.build(c.Layout.Shared)
	t.build(c.Layout.Own)
	t.seal(c.Table)
	loopback(p)
	finishInit(p, p, c)
	return &Init{Program: p, Flags: Namespaces, tree: t}
}

// dieWithHost is the first step of pid 1, and everything in its pid namespace dies
// with it. If the host died before this step, pid 1 finds its pipe closed.
func dieWithHost(p *launch.Program) {
	prctl(p, "die with the host", unix.PR_SET_PDEATHSIG, int(unix.SIGKILL))
}

// finishInit ends the program of a pid 1.
func finishInit(p, outermost *launch.Program, c Config) {
	p.Phase(launch.Namespaces)
	p.Do("set hostname", c.Hostname, unix.SYS_SETHOSTNAME, p.Str(c.Hostname), launch.Int(len(c.Hostname)))
	p.Phase(launch.Confine)
	// execve keeps this, so the kernel reaps the orphans that pid 1 inherits.
	setSignal(p, "ignore SIGCHLD", unix.SIGCHLD, p.Words(1 /* SIG_IGN */, 0, 0, 0))
	keepOneCapability(p)
	dropPrivileges(p)
	// The pipe goes to 0 and the image to 1, wherever they were: from 2 on nothing of
	// the host's is left.
	placeAt(p, []int{c.PipeFD, c.PauseFD})
	closeOnExec(p, 1)
	closeFrom(p, 2)
	p.FreeCPUs(outermost)
	p.Phase(launch.Exec)
	execImage(p, "init", 1, []string{"tegmen-init", c.Name}, nil, 0)
}

// loopback brings up lo, the only interface.
func loopback(p *launch.Program) {
	p.Phase(launch.Namespaces)
	socket := ints(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	fd := p.Do("open socket", "lo", unix.SYS_SOCKET, socket...).Slot().Arg()
	var req [40]byte // struct ifreq
	copy(req[:], "lo")
	req[unix.IFNAMSIZ] = unix.IFF_UP
	p.Do("bring up", "lo", unix.SYS_IOCTL, fd, launch.Int(unix.SIOCSIFFLAGS), p.Bytes(req[:]))
	p.Do("close socket", "lo", unix.SYS_CLOSE, fd)
}

// securebits take all special power from uid 0, irrevocably (capabilities(7)).
const securebits = 1<<0 | 1<<1 | // NOROOT, locked
	1<<2 | 1<<3 | // NO_SETUID_FIXUP, locked
	1<<5 | // KEEP_CAPS stays off
	1<<6 | 1<<7 // NO_CAP_AMBIENT_RAISE, locked

// dropPrivileges arranges that the coming execve leaves no capability, even for
// uid 0. Until then the process keeps them: it shares the host's memory, and a
// guest cannot trace it because it has capabilities that the guest lacks.
func dropPrivileges(p *launch.Program) launch.Step {
	prctl(p, "no new privileges", unix.PR_SET_NO_NEW_PRIVS, 1)
	return prctl(p, "set securebits", unix.PR_SET_SECUREBITS, securebits)
}

// keepOneCapability leaves the process a single capability through its execve. It
// allows next to nothing, but guests have none, so from the first instruction on no
// guest can trace the process or see it in /proc. A pid 1 that a guest could trace
// could be made to outlive the host.
func keepOneCapability(p *launch.Program) {
	const what = "keep a capability"
	const harmless = unix.CAP_WAKE_ALARM
	const low, all = uint64(unix.LINUX_CAPABILITY_VERSION_3), ^uint64(0)
	// struct __user_cap_data_struct: effective, permitted, inheritable of the
	// lower 32 capabilities, then of the upper.
	data := p.Words(all, 0xffffffff<<32, 0xffffffff|1<<(harmless-32)<<32)
	p.Do(what, "", unix.SYS_CAPSET, p.Words(low), data)
	prctl(p, what, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, harmless)
}

// placeAt moves descriptors to 0, 1, 2, … in the calling process, without
// close-on-exec. It first moves those in the way above all targets.
func placeAt(p *launch.Program, fds []int) {
	from := make([]launch.Arg, len(fds))
	for i, fd := range fds {
		from[i] = launch.Int(fd)
		if fd < len(fds) {
			dup := ints(fd, unix.F_DUPFD_CLOEXEC, len(fds))
			from[i] = p.Do("move descriptor", "", unix.SYS_FCNTL, dup...).Slot().Arg()
		}
	}
	for i := range fds {
		p.Do("place descriptor", "", unix.SYS_DUP3, from[i], launch.Int(i), launch.Int(0))
	}
}
