package seccomp

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Kind says what happens to a system call.
type Kind string

// The kinds, named as in libseccomp and in docker's profiles.
const (
	Allow       Kind = "SCMP_ACT_ALLOW"        // the call is executed
	Errno       Kind = "SCMP_ACT_ERRNO"        // the call fails with an errno
	KillProcess Kind = "SCMP_ACT_KILL_PROCESS" // SIGSYS kills the process
	KillThread  Kind = "SCMP_ACT_KILL_THREAD"  // SIGSYS kills the calling thread
	Trap        Kind = "SCMP_ACT_TRAP"         // SIGSYS is sent and can be caught
	Log         Kind = "SCMP_ACT_LOG"          // the call is executed and written to the kernel's log
	Notify      Kind = "SCMP_ACT_NOTIFY"       // a supervisor in another process decides
)

// returned pairs a kind with the value that a filter returns for it.
type returned struct {
	kind  Kind
	value uint32
}

// kinds lists every kind with its return value (seccomp(2)).
var kinds = []returned{
	{Allow, 0x7fff0000}, {Errno, 0x00050000}, {KillProcess, 0x80000000}, {KillThread, 0x00000000},
	{Trap, 0x00030000}, {Log, 0x7ffc0000}, {Notify, 0x7fc00000},
}

// An Action is a filter's decision on a call.
type Action struct {
	Kind  Kind          // what happens
	Errno syscall.Errno // what the call fails with if Kind is Errno, otherwise 0
}

// action decodes the return value of a filter.
func action(ret uint32) Action {
	for _, k := range kinds {
		if ret&0xffff0000 == k.value {
			a := Action{Kind: k.kind}
			if k.kind == Errno {
				a.Errno = syscall.Errno(ret & 0xffff)
			}
			return a
		}
	}
	return Action{Kind: KillProcess} // as the kernel treats unknown values
}

func (a Action) ret() uint32 {
	i := slices.IndexFunc(kinds, func(k returned) bool { return k.kind == a.Kind })
	return kinds[i].value | uint32(a.Errno)
}

// String returns the action in short: "allow", "EPERM" or "kill", for example.
func (a Action) String() string {
	switch a.Kind {
	case Allow:
		return "allow"
	case Errno:
		return errnoName(a.Errno)
	case KillProcess:
		return "kill"
	}
	return strings.ToLower(strings.TrimPrefix(string(a.Kind), "SCMP_ACT_"))
}

// Linux's numbers: those of package syscall depend on the system it is built for.
const (
	eperm           syscall.Errno = 1
	enosys          syscall.Errno = 38
	enoprotoopt     syscall.Errno = 92
	eprotonosupport syscall.Errno = 93
	eafnosupport    syscall.Errno = 97
)

func errnoName(e syscall.Errno) string {
	switch e {
	case eperm:
		return "EPERM"
	case enosys:
		return "ENOSYS"
	case enoprotoopt:
		return "ENOPROTOOPT"
	case eprotonosupport:
		return "EPROTONOSUPPORT"
	case eafnosupport:
		return "EAFNOSUPPORT"
	}
	return fmt.Sprintf("errno %d", int(e))
}
