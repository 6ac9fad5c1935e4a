//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

// Filters are the seccomp filters of a command.
type Filters struct {
	// Programs are the filters, each an array of struct sock_filter. They are
	// installed in this order; nil installs none.
	Programs [][]byte
	// Audit sends the descriptor that lists the last program's refusals through the
	// report descriptor, which must then be a Unix socket.
	Audit bool
	// Cookie is what the programs demand of the execve of the gate and of the
	// command; zeros if they demand nothing.
	Cookie launch.Cookie
}

// install comes last before execve: from here on only what the filters allow can be
// called. Without the no-new-privileges flag, set earlier, the kernel would refuse
// them (seccomp(2)).
func (f *Filters) install(p *launch.Program, report int) {
	for i, prog := range f.Programs {
		flags := 0
		audit := f.Audit && i == len(f.Programs)-1
		if audit {
			flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
		}
		fprog := p.Record(launch.Int(len(prog)/8), p.Bytes(prog)) // struct sock_fprog
		mode := launch.Int(unix.SECCOMP_SET_MODE_FILTER)
		step := p.Do("restrict", "system calls", unix.SYS_SECCOMP, mode, launch.Int(flags), fprog)
		if audit {
			handOver(p, step, "listener", report)
		}
	}
}

// handOver sends the descriptor that a step produces through a Unix socket. In this
// process it is close-on-exec.
func handOver(p *launch.Program, from launch.Step, what string, socket int) {
	// struct cmsghdr: length, level and type, then the descriptor.
	control := p.Words(20, unix.SOL_SOCKET|unix.SCM_RIGHTS<<32, 0)
	from.Into(p.SlotIn(control, 2))
	iov := p.Record(p.Str("l"), launch.Int(1))
	none := launch.Int(0)
	msg := p.Record(none, none, iov, launch.Int(1), control, launch.Int(24), none) // struct msghdr
	p.Do("hand over", what, unix.SYS_SENDMSG, launch.Int(socket), msg)
}
