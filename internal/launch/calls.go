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

// A signature names a system call and its arguments, a letter each: d descriptor,
// s string, p pointer to a structure, x flags, o octal, i number.
type signature struct{ name, args string }

// calls lists the system calls that programs use, by number. It is an array and
// not a map, so the linker lays it out and a start pays nothing for it.
var calls = [...]signature{
	unix.SYS_CAPSET:                  {"capset", "pp"},
	unix.SYS_CHDIR:                   {"chdir", "s"},
	unix.SYS_CLONE:                   {"clone", "xiiii"},
	unix.SYS_CLONE3:                  {"clone3", "pi"},
	unix.SYS_CLOSE:                   {"close", "d"},
	unix.SYS_CLOSE_RANGE:             {"close_range", "iix"},
	unix.SYS_DUP3:                    {"dup3", "ddx"},
	unix.SYS_EPOLL_CREATE1:           {"epoll_create1", "x"},
	unix.SYS_EPOLL_CTL:               {"epoll_ctl", "didp"},
	unix.SYS_EPOLL_PWAIT:             {"epoll_pwait", "dpiipi"},
	unix.SYS_EXECVE:                  {"execve", "spp"},
	unix.SYS_EXECVEAT:                {"execveat", "dsppxi"},
	unix.SYS_EXIT_GROUP:              {"exit_group", "i"},
	unix.SYS_FCHDIR:                  {"fchdir", "d"},
	unix.SYS_FCNTL:                   {"fcntl", "dii"},
	unix.SYS_FLOCK:                   {"flock", "dx"},
	unix.SYS_FUTEX:                   {"futex", "piiipi"},
	unix.SYS_IOCTL:                   {"ioctl", "dxp"},
	unix.SYS_KEYCTL:                  {"keyctl", "is"},
	unix.SYS_LANDLOCK_ADD_RULE:       {"landlock_add_rule", "dipi"},
	unix.SYS_LANDLOCK_CREATE_RULESET: {"landlock_create_ruleset", "pii"},
	unix.SYS_LANDLOCK_RESTRICT_SELF:  {"landlock_restrict_self", "dx"},
	unix.SYS_MKDIRAT:                 {"mkdirat", "dso"},
	unix.SYS_MKNODAT:                 {"mknodat", "dsxd"},
	unix.SYS_MOUNT:                   {"mount", "sssxs"},
	unix.SYS_MOUNT_SETATTR:           {"mount_setattr", "dsxpi"},
	unix.SYS_MOVE_MOUNT:              {"move_mount", "dsdsx"},
	unix.SYS_OPENAT:                  {"openat", "dsxo"},
	unix.SYS_OPENAT2:                 {"openat2", "dspi"},
	unix.SYS_OPEN_TREE:               {"open_tree", "dsx"},
	unix.SYS_PIDFD_OPEN:              {"pidfd_open", "ix"},
	unix.SYS_PIVOT_ROOT:              {"pivot_root", "ss"},
	unix.SYS_PRCTL:                   {"prctl", "iiiii"},
	unix.SYS_PRLIMIT64:               {"prlimit64", "iipp"},
	unix.SYS_READ:                    {"read", "dpi"},
	unix.SYS_RT_SIGACTION:            {"rt_sigaction", "ippi"},
	unix.SYS_RT_SIGPROCMASK:          {"rt_sigprocmask", "ippi"},
	unix.SYS_SCHED_SETAFFINITY:       {"sched_setaffinity", "iip"},
	unix.SYS_SECCOMP:                 {"seccomp", "ixp"},
	unix.SYS_SENDMSG:                 {"sendmsg", "dpx"},
	unix.SYS_SETHOSTNAME:             {"sethostname", "si"},
	unix.SYS_SETNS:                   {"setns", "dx"},
	unix.SYS_SETSID:                  {"setsid", ""},
	unix.SYS_SHMCTL:                  {"shmctl", "iip"},
	unix.SYS_SOCKET:                  {"socket", "iii"},
	unix.SYS_STATX:                   {"statx", "dsxxp"},
	unix.SYS_SYMLINKAT:               {"symlinkat", "sds"},
	unix.SYS_UMASK:                   {"umask", "o"},
	unix.SYS_UMOUNT2:                 {"umount2", "sx"},
	unix.SYS_UNLINKAT:                {"unlinkat", "dsx"},
	unix.SYS_UNSHARE:                 {"unshare", "x"},
	unix.SYS_WRITE:                   {"write", "dpi"},
}

func call(nr uintptr) signature {
	if nr < uintptr(len(calls)) && calls[nr].name != "" {
		return calls[nr]
	}
	return signature{"syscall " + strconv.Itoa(int(nr)), "iiiiii"}
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
	n := 0
	for i := range p.steps {
		s := &p.steps[i]
		fmt.Fprintf(b, "%s%s(%s)", indent, call(s.nr).name, strings.Join(p.args(s, slots), ", "))
		if s.dst != nil {
			b.WriteString(" = " + slotName(slots, uintptr(unsafe.Pointer(s.dst))))
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

// slotName numbers slots in the order in which they are printed first.
func slotName(slots map[uintptr]int, addr uintptr) string {
	if _, ok := slots[addr]; !ok {
		slots[addr] = len(slots) + 1
	}
	return "$" + strconv.Itoa(slots[addr])
}

func (p *Program) args(s *step, slots map[uintptr]int) []string {
	kinds := call(s.nr).args
	if s.nr == unix.SYS_PRCTL && s.args[0] == unix.PR_SET_NAME {
		kinds = "is"
	}
	args := make([]string, 0, len(kinds))
	for i, kind := range kinds {
		if s.kind>>(kindRef+i)&1 != 0 {
			args = append(args, slotName(slots, s.args[i]))
		} else {
			args = append(args, p.arg(kind, s.args[i]))
		}
	}
	return args
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
