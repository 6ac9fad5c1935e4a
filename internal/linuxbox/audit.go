//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// audit answers for the filter of a command that asks about each refusal
// (seccomp_unotify(2), Linux 5.0): it counts it and gives the answer that the
// filter itself would have given. It ends when no process is left that asks.
type audit struct {
	filter seccomp.Filter
	arch   string
	ready  chan struct{} // closed when the listener has been received, or never will be

	mu      sync.Mutex
	refused map[box.Refusal]int
}

// reportPipe is a pipe, or a pair of Unix sockets where a descriptor is to come
// back through it.
func reportPipe(audited bool) (read, write *os.File, err error) {
	if !audited {
		return os.Pipe()
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(pair[0]), "report"), os.NewFile(uintptr(pair[1]), "report"), nil
}

// startAudit serves the listener that comes back through the report; nil without an
// audit.
func startAudit(c *box.Config, report *os.File, arch string) *audit {
	if c.Filter == nil || !c.Audit {
		return nil
	}
	a := &audit{filter: c.Filter, arch: arch, ready: make(chan struct{}), refused: make(map[box.Refusal]int)}
	go func() {
		listener := receive(report)
		close(a.ready)
		if listener != nil {
			a.serve(listener)
			_ = listener.Close() // nobody asks any more
		}
	}()
	return a
}

// wait returns when others may read the report. A nil audit has none.
func (a *audit) wait() {
	if a != nil {
		<-a.ready
	}
}

// receive takes the listener out of the report, or nil if the command died before
// it was sent.
func receive(report *os.File) (listener *os.File) {
	conn, err := report.SyscallConn()
	if err != nil {
		return nil
	}
	_ = conn.Read(func(fd uintptr) bool { // it is closed only after this
		var data [1]byte
		control := make([]byte, unix.CmsgSpace(4))
		_, n, _, _, err := unix.Recvmsg(int(fd), data[:], control, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EAGAIN || err == unix.EINTR {
			return false
		}
		messages, _ := unix.ParseSocketControlMessage(control[:max(n, 0)]) // none, when it is malformed
		for _, m := range messages {
			if fds, err := unix.ParseUnixRights(&m); err == nil && len(fds) == 1 {
				_ = unix.SetNonblock(fds[0], true) // for the poller
				listener = os.NewFile(uintptr(fds[0]), "seccomp listener")
			}
		}
		return true
	})
	return listener
}

// notification and response are struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	nr, arch   uint32
	ip         uint64
	args       [6]uint64
}

type response struct {
	id           uint64
	value        int64
	errno, flags int32
}

const (
	notifyReceive = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	notifySend    = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
)

func (a *audit) serve(listener *os.File) {
	conn, err := listener.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) (done bool) {
		for {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(poll, 0); err == unix.EINTR {
				continue
			} else if n == 0 {
				return false
			}
			if poll[0].Revents&unix.POLLIN == 0 {
				return true // hung up: all who could ask have ended
			}
			var n notification
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, notifyReceive, uintptr(unsafe.Pointer(&n))); errno != 0 {
				continue // who asked has been killed
			}
			r := a.answer(n)
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, notifySend, uintptr(unsafe.Pointer(&r))) // likewise
		}
	})
}

// answer gives the answer that the filter itself would have given. Where the filter
// kills, the process gets the signal for it.
func (a *audit) answer(n notification) response {
	act := a.filter.Decide(seccomp.Call{Nr: n.nr, Arch: n.arch, IP: n.ip, Args: n.args})
	name := seccomp.Name(a.arch, n.nr)
	switch {
	case n.arch != seccomp.AuditArch(a.arch):
		name = "of another architecture"
	case name == "":
		name = "unknown" // in one: a guest can make up any number
	}
	a.mu.Lock()
	a.refused[box.Refusal{Call: name, Action: act.String()}]++
	a.mu.Unlock()
	errno := act.Errno
	if act.Kind != seccomp.Errno {
		errno = syscall.ENOSYS
		if n.pid > 0 { // 0, of a process that this one cannot see, would be our own group
			_ = unix.Kill(int(n.pid), unix.SIGSYS) // it may have ended
		}
	}
	return response{id: n.id, errno: -int32(errno)}
}

// list returns the refusals so far, sorted.
func (a *audit) list() []box.Refusal {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	list := slices.SortedFunc(maps.Keys(a.refused), func(a, b box.Refusal) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Action, b.Action))
	})
	for i := range list {
		list[i].Count = a.refused[list[i]]
	}
	return list
}
