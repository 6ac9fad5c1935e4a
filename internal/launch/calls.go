//go:build linux && (amd64 || arm64)

package launch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call names the system calls that programs use, with a letter an argument:
// d descriptor, s string, p pointer to a structure, x flags, o octal, i number.
func call(nr uintptr) (name, args string) {
	switch nr {
	case unix.SYS_CAPSET:
		return "capset", "pp"
	case unix.SYS_CHDIR:
		return "chdir", "s"
	case unix.SYS_CLONE:
		return "clone", "xiiii"
	case unix.SYS_CLONE3:
		return "clone3", "pi"
	case unix.SYS_CLOSE:
		return "close", "d"
	case unix.SYS_CLOSE_RANGE:
		return "close_range", "iix"
	case unix.SYS_DUP3:
		return "dup3", "ddx"
	case unix.SYS_EPOLL_CREATE1:
		return "epoll_create1", "x"
	case unix.SYS_EPOLL_CTL:
		return "epoll_ctl", "didp"
	case unix.SYS_EPOLL_PWAIT:
		return "epoll_pwait", "dpiipi"
	case unix.SYS_EXECVE:
		return "execve", "spp"
	case unix.SYS_EXECVEAT:
		return "execveat", "dsppxi"
	case unix.SYS_EXIT_GROUP:
		return "exit_group", "i"
	case unix.SYS_FCHDIR:
		return "fchdir", "d"
	case unix.SYS_FCNTL:
		return "fcntl", "dii"
	case unix.SYS_FLOCK:
		return "flock", "dx"
	case unix.SYS_FUTEX:
		return "futex", "piiipi"
	case unix.SYS_IOCTL:
		return "ioctl", "dxp"
	case unix.SYS_KEYCTL:
		return "keyctl", "is"
	case unix.SYS_LANDLOCK_ADD_RULE:
		return "landlock_add_rule", "dipi"
	case unix.SYS_LANDLOCK_CREATE_RULESET:
		return "landlock_create_ruleset", "pii"
	case unix.SYS_LANDLOCK_RESTRICT_SELF:
		return "landlock_restrict_self", "dx"
	case unix.SYS_MKDIRAT:
		return "mkdirat", "dso"
	case unix.SYS_MOUNT:
		return "mount", "sssxs"
	case unix.SYS_MOUNT_SETATTR:
		return "mount_setattr", "dsxpi"
	case unix.SYS_MOVE_MOUNT:
		return "move_mount", "dsdsx"
	case unix.SYS_OPENAT:
		return "openat", "dsxo"
	case unix.SYS_OPENAT2:
		return "openat2", "dspi"
	case unix.SYS_OPEN_TREE:
		return "open_tree", "dsx"
	case unix.SYS_PIDFD_OPEN:
		return "pidfd_open", "ix"
	case unix.SYS_PIVOT_ROOT:
		return "pivot_root", "ss"
	case unix.SYS_PRCTL:
		return "prctl", "iiiii"
	case unix.SYS_PRLIMIT64:
		return "prlimit64", "iipp"
	case unix.SYS_READ:
		return "read", "dpi"
	case unix.SYS_RT_SIGACTION:
		return "rt_sigaction", "ippi"
	case unix.SYS_RT_SIGPROCMASK:
		return "rt_sigprocmask", "ippi"
	case unix.SYS_SCHED_SETAFFINITY:
		return "sched_setaffinity", "iip"
	case unix.SYS_SECCOMP:
		return "seccomp", "ixp"
	case unix.SYS_SENDMSG:
		return "sendmsg", "dpx"
	case unix.SYS_SETHOSTNAME:
		return "sethostname", "si"
	case unix.SYS_SETNS:
		return "setns", "dx"
	case unix.SYS_SETSID:
		return "setsid", ""
	case unix.SYS_SHMCTL:
		return "shmctl", "iip"
	case unix.SYS_SOCKET:
		return "socket", "iii"
	case unix.SYS_SYMLINKAT:
		return "symlinkat", "sds"
	case unix.SYS_UMASK:
		return "umask", "o"
	case unix.SYS_UMOUNT2:
		return "umount2", "sx"
	case unix.SYS_STATX:
		return "statx", "dsxxp"
	case unix.SYS_UNLINKAT:
		return "unlinkat", "dsx"
	case unix.SYS_UNSHARE:
		return "unshare", "x"
	case unix.SYS_WRITE:
		return "write", "dpi"
	}
	return "syscall " + strconv.Itoa(int(nr)), "iiiiii"
}

func callName(nr uintptr) string {
	name, _ := call(nr)
	return name
}

// String lists the program as system calls, one a line, a cloned program
// indented below the step that clones it. A number that an earlier step
// produces is printed as $n, and where it is produced as "= $n".
func (p *Program) String() string {
	var b strings.Builder
	p.print(&b, "", make(map[uintptr]int))
	return b.String()
}

func (p *Program) print(b *strings.Builder, indent string, slots map[uintptr]int) {
	slot := func(addr uintptr) int {
		if _, ok := slots[addr]; !ok {
			slots[addr] = len(slots) + 1
		}
		return slots[addr]
	}
	n := 0
	for i := range p.steps {
		s := &p.steps[i]
		args := make([]string, 0, 6)
		name, kinds := call(s.nr)
		if s.nr == unix.SYS_PRCTL && s.args[0] == unix.PR_SET_NAME {
			kinds = "is"
		}
		for j, kind := range kinds {
			v := s.args[j]
			if s.kind>>(kindRef+j)&1 != 0 {
				args = append(args, "$"+strconv.Itoa(slot(v)))
				continue
			}
			args = append(args, p.arg(kind, v))
		}
		fmt.Fprintf(b, "%s%s(%s)", indent, name, strings.Join(args, ", "))
		if s.dst != nil {
			fmt.Fprintf(b, " = $%d", slot(uintptr(unsafe.Pointer(s.dst))))
		}
		if s.kind&kindTry != 0 {
			b.WriteString(" ?")
		}
		b.WriteString(strings.TrimRight("\t# "+p.notes[i].what+" "+p.notes[i].path, " ") + "\n")
		if s.kind&kindClone != 0 {
			p.nested[n].print(b, indent+"    ", slots)
			n++
		}
	}
}

func (p *Program) arg(kind rune, v uintptr) string {
	switch kind {
	case 's':
		if s, ok := p.stringAt(v); ok {
			return strconv.Quote(s)
		}
		return "NULL"
	case 'p':
		if v == 0 {
			return "NULL"
		}
		return "…"
	case 'd':
		if int32(v) == unix.AT_FDCWD {
			return "AT_FDCWD"
		}
		return strconv.Itoa(int(int32(v)))
	case 'x':
		return "0x" + strconv.FormatUint(uint64(v), 16)
	case 'o':
		return "0" + strconv.FormatUint(uint64(v), 8)
	}
	return strconv.Itoa(int(v))
}

// stringAt reads a NUL-terminated string back from the program's own memory.
func (p *Program) stringAt(addr uintptr) (string, bool) {
	for _, c := range p.chunks {
		if base := uintptr(unsafe.Pointer(&c[0])); addr >= base && addr < base+uintptr(len(c)) {
			s := c[addr-base:]
			return string(s[:bytes.IndexByte(s, 0)]), true
		}
	}
	return "", false
}
