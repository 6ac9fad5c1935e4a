//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

// Filters are the seccomp filters of a command, struct sock_filter each.
type Filters struct {
	Programs [][]byte
	// Audit sends the descriptor on which the last program's refusals are asked
	// about through the report descriptor, which has to be a Unix socket.
	Audit bool
	// Cookie is what the programs want of the execve of the gate and of the
	// command; zeros when they do not.
	Cookie launch.Cookie
}

// install is the last thing before execve: from here on only what the filters
// allow can be called. No new privileges are possible already, without which
// the kernel refuses (seccomp(2)).
func (f *Filters) install(p *launch.Program, report int) {
	for i, prog := range f.Programs {
		flags := 0
		audit := f.Audit && i == len(f.Programs)-1
		if audit {
			flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
		}
		fprog := p.Record(launch.Int(len(prog)/8), p.Bytes(prog))
		step := p.Do("restrict", "system calls", unix.SYS_SECCOMP, launch.Int(unix.SECCOMP_SET_MODE_FILTER), launch.Int(flags), fprog)
		if audit {
			handOver(p, step, "listener", report)
		}
	}
}

// handOver sends the descriptor that a step produces through a Unix socket. It
// is close-on-exec here.
func handOver(p *launch.Program, from launch.Step, what string, socket int) {
	// struct cmsghdr: length, level and type, then the descriptor.
	control := p.Words(20, unix.SOL_SOCKET|unix.SCM_RIGHTS<<32, 0)
	from.Into(p.SlotIn(control, 2))
	iov := p.Record(p.Str("l"), launch.Int(1))
	msg := p.Record(launch.Int(0), launch.Int(0), iov, launch.Int(1), control, launch.Int(24), launch.Int(0))
	p.Do("hand over", what, unix.SYS_SENDMSG, launch.Int(socket), msg, launch.Int(0))
}
