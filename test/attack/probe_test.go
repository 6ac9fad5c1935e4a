//go:build linux

package attack_test

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// lastCall is the highest system call number that is tried, beyond that of any kernel.
const lastCall = 560

// An asked call is a line of testdata/probe/probe.c.
type asked struct {
	entry  string // into the kernel: native, x32, i386
	nr     uint32
	args   [6]uint64
	answer string // "ok", "errno 1", "signal 31", "exit", "timeout"
}

func (a asked) String() string {
	return fmt.Sprintf("%s %d%s", a.entry, a.nr&^x32Bit,
		strings.ReplaceAll(fmt.Sprintf("%#x", a.args), "0xffffffffffffffff", "-1"))
}

const x32Bit = 0x40000000

// TestEverySystemCall makes each system call inside and outside, by each entry into the kernel. The answer to a
// refused call is the policy's, and every other answer is the same as outside.
func TestEverySystemCall(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Program("gcc"), testenv.Program("setpriv"))
	eng, dir := testbox.Open(t), testenv.Dir(t)
	program := compileProbe(t, dir)
	outside := make(map[string][]asked)
	for _, q := range questions() {
		cmd := exec.CommandContext(testbox.Within(t, time.Minute), "setpriv",
			slices.Concat(guestFlags(), []string{program}, q.args)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("outside: %v", err)
		}
		outside[q.name] = answers(t, q.args[0], out)
	}
	for _, profile := range append(seccomp.Names(), engine.SeccompOff) {
		t.Run(profile, func(t *testing.T) {
			var filter seccomp.Filter // none allows everything
			if profile != engine.SeccompOff {
				var err error
				if filter, err = seccomp.Builtin(profile, runtime.GOARCH); err != nil {
					t.Fatal(err)
				}
			}
			box := testbox.Start(t, eng, engine.Spec{Seccomp: engine.Seccomp{Profile: profile},
				FS: engine.FS{Mounts: []engine.Mount{{Source: dir, Target: dir, ReadOnly: true}}}})
			for _, q := range questions() {
				t.Run(q.name, func(t *testing.T) {
					res := testbox.Run(t, box, program, q.args...)
					if res.Outcome != engine.OutcomeOK || res.Streams.TruncatedStdout {
						t.Fatalf("%s %d, stderr %s", res.Outcome, res.ExitCode, res.Stderr)
					}
					compare(t, filter, answers(t, q.args[0], res.Stdout), outside[q.name], q.count)
				})
			}
		})
	}
}

func compileProbe(t *testing.T, dir string) (program string) {
	t.Helper()
	program = filepath.Join(dir, "probe")
	if out, err := exec.Command("gcc", "-O1", "-Wall", "-Werror", "-static", "-o", program,
		"testdata/probe/probe.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}

// question is one run of the probe, and the number of answers it must have.
type question struct {
	name  string
	args  []string
	count int
}

func questions() (list []question) {
	entries := []string{"native"}
	if runtime.GOARCH == "amd64" {
		entries = append(entries, "x32", "i386")
	}
	for _, entry := range entries {
		list = append(list, question{entry, []string{entry, "0", strconv.Itoa(lastCall)}, 2 * (lastCall + 1)})
	}
	args := []string{"native"}
	for _, c := range armed() {
		args = append(args, strconv.Itoa(c.nr))
		for i := range 6 {
			var a uint64
			if i < len(c.args) {
				a = c.args[i]
			}
			args = append(args, fmt.Sprintf("%#x", a))
		}
	}
	return append(list, question{"arguments", args, len(armed())})
}

// guestFlags make setpriv drop what a guest lacks: the account, its groups, capabilities.
func guestFlags() []string {
	args := []string{"--no-new-privs"}
	if os.Geteuid() == 0 {
		args = append(args, "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
	}
	return append(args, "--")
}

func answers(t *testing.T, entry string, out []byte) (list []asked) {
	t.Helper()
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		f := strings.SplitN(s.Text(), " ", 8)
		if len(f) != 8 {
			t.Fatalf("the probe says %q", s.Text())
		}
		a := asked{entry: entry, answer: f[7]}
		for i := range 7 {
			n, err := strconv.ParseUint(f[i], 0, 64)
			if err != nil {
				t.Fatalf("the probe says %q: %v", s.Text(), err)
			}
			if i == 0 {
				a.nr = uint32(n)
			} else {
				a.args[i-1] = n
			}
		}
		list = append(list, a)
	}
	return list
}

// compare checks the answers inside against the policy and, if that lets a call through, against the answers outside.
func compare(t *testing.T, f seccomp.Filter, inside, outside []asked, want int) {
	t.Helper()
	if len(inside) != want || len(outside) != want {
		t.Fatalf("%d answers inside, %d outside, want %d", len(inside), len(outside), want)
	}
	refused, used := 0, make(map[string]bool)
	for i, in := range inside {
		out := outside[i]
		if in.nr != out.nr {
			t.Fatalf("inside %v, outside %v", in, out)
		}
		if answer, denied := decided(f, in); denied {
			refused++
			if in.answer != answer && !(passesFilters(in) && in.answer == out.answer) {
				t.Errorf("%v: %s, but the policy says %s", in, in.answer, answer)
			}
			continue
		}
		switch reason := excused(in, out); {
		case in.answer == out.answer:
		case reason != "":
			used[reason] = true
		default:
			t.Errorf("%v: %s, outside %s", in, in.answer, out.answer)
		}
	}
	t.Logf("%d calls, %d refused by the policy; otherwise than outside: %q", want, refused, slices.Sorted(maps.Keys(used)))
}

// decided returns the policy's answer to a call, unless it lets it through.
func decided(f seccomp.Filter, a asked) (answer string, denied bool) {
	if f == nil {
		return "", false
	}
	arch := seccomp.AuditArch(runtime.GOARCH)
	if a.entry == "i386" {
		arch = 0x40000003 // AUDIT_ARCH_I386
	}
	switch action := f.Decide(seccomp.Call{Nr: a.nr, Arch: arch, Args: a.args}); action.Kind {
	case seccomp.Allow, seccomp.Log:
		return "", false
	case seccomp.Errno:
		return errno(action.Errno), true
	default: // kill
		return fmt.Sprintf("signal %d", int(unix.SIGSYS)), true
	}
}

// passesFilters reports whether newer kernels (6.18 does) let a call past every filter: uretprobe and uprobe of amd64,
// which do nothing except from where the kernel put them itself.
func passesFilters(a asked) bool {
	return runtime.GOARCH == "amd64" && a.entry == "native" && (a.nr == 335 || a.nr == 336)
}

// excused returns why a call that the policy lets through must be answered differently from outside.
func excused(in, out asked) string {
	native := in.entry == "native"
	switch {
	case in.answer == errno(unix.EINVAL) && out.answer == errno(unix.EPERM) && in.args[0] == 0:
		return "a sandbox has one user and one group: any other is EINVAL"
	case native && (in.nr == unix.SYS_CLONE || in.nr == unix.SYS_UNSHARE) && in.args[0]&unix.CLONE_NEWUSER != 0 &&
		in.answer == errno(unix.ENOSPC):
		return "a sandbox may have no user namespaces"
	case native && in.nr == unix.SYS_SECCOMP && in.args[0] == 0 && in.answer == errno(unix.EINVAL) &&
		out.answer == "signal 9":
		return "who has a filter cannot change to the strict mode, which kills"
	}
	return ""
}

func errno(e unix.Errno) string { return fmt.Sprintf("errno %d", int(e)) }

type armedCall struct {
	nr   int
	args []uint64
}

// armed returns the calls that a policy may judge by their arguments.
func armed() (list []armedCall) {
	const garbage = 1 << 40 // where a call takes 32 bits
	add := func(nr int, args ...uint64) { list = append(list, armedCall{nr, args}) }
	for bit := uint64(1); bit < 1<<32; bit <<= 1 {
		add(unix.SYS_UNSHARE, bit)
		if bit&(unix.CLONE_VM|unix.CLONE_VFORK|unix.CLONE_SETTLS|0xff) == 0 {
			add(unix.SYS_CLONE, bit|uint64(unix.SIGCHLD)) // the new process ends at once
		}
		add(unix.SYS_PERSONALITY, bit)
		add(unix.SYS_PERSONALITY, bit|garbage)
	}
	add(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|garbage)
	add(unix.SYS_PERSONALITY, 0xffffffff)
	for family := range uint64(48) {
		for _, kind := range []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW,
			unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC} {
			add(unix.SYS_SOCKET, family, kind, 0)
			add(unix.SYS_SOCKETPAIR, family, kind, 0)
		}
	}
	add(unix.SYS_SOCKET, unix.AF_VSOCK|garbage, unix.SOCK_STREAM, 0)
	add(unix.SYS_SOCKET, unix.AF_INET|garbage, unix.SOCK_STREAM, 0)
	for protocol := range uint64(24) {
		add(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, protocol)
	}
	for _, protocol := range []uint64{1, 2, 6, 17, 33, 58, 115, 132, 136, 255, 262} {
		for _, family := range []uint64{unix.AF_INET, unix.AF_INET6} {
			for _, kind := range []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW} {
				add(unix.SYS_SOCKET, family, kind, protocol)
				add(unix.SYS_SOCKET, family, kind, protocol|garbage)
			}
		}
	}
	for _, request := range []uint64{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSTI | garbage, unix.TIOCLINUX | garbage,
		unix.TIOCGWINSZ, unix.TIOCINQ} {
		add(unix.SYS_IOCTL, 0, request)
	}
	for _, nr := range []int{1000, x32Bit - 1, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		add(nr)
	}
	for kind := uint64(0); kind < 1<<16; kind += 1 << 12 {
		add(unix.SYS_MKNODAT, ^uint64(0), 0, kind|0o600, 0x103) // no path: nothing is made
	}
	for option := range uint64(128) {
		add(unix.SYS_SETSOCKOPT, 0, unix.IPPROTO_TCP, option) // descriptor 0 is no socket
		add(unix.SYS_SETSOCKOPT, 0, unix.IPPROTO_UDP, option|garbage)
	}
	for operation := range uint64(5) {
		for bit := uint64(1); bit < 1<<8; bit <<= 1 {
			add(unix.SYS_SECCOMP, operation, bit) // without a filter
		}
	}
	return list
}
