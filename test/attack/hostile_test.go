//go:build linux

package attack_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// attacker is a guest that tries, in a loop, to get hold of processes that are being started: they share the memory of
// the host until they call execve. It prints whatever it gets, and "done" on SIGTERM. It leaves alone processes with
// the marker "spare" in their command line: itself and the driver.
const attacker = `
import ctypes, os, signal, sys, errno
libc = ctypes.CDLL(None, use_errno=True)
me = os.getpid()
stop = False
def term(*a):
    global stop
    stop = True
signal.signal(signal.SIGTERM, term)
SYS_pidfd_open, SYS_pidfd_getfd, SYS_process_vm_readv = 434, 438, %d
secret = b"host-memory-secret"
mode = sys.argv[1]
print("ready", flush=True)
rounds = hits = 0
class iov(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
buf = ctypes.create_string_buffer(64)
while not stop:
    rounds += 1
    # The newest pids are tried blindly: a process that is being started is hidden in /proc.
    try: last = int(open("/proc/loadavg").read().split()[-1])
    except OSError: last = me
    for pid in range(max(2, last - 3), last + 4):
        if pid == me: continue
        for name in ("mem", "maps", "environ", "cmdline", "status", "oom_score_adj", "fd", "root", "exe"):
            p = "/proc/%%d/%%s" %% (pid, name)
            try:
                if name == "fd": data = repr([os.readlink(p + "/" + f) for f in os.listdir(p)]).encode()
                elif name in ("root", "exe"): data = os.readlink(p).encode()
                elif name == "mem":
                    fd = os.open(p, os.O_RDONLY); os.close(fd); data = b""
                else: data = open(p, "rb").read()
            except OSError: continue
            if secret in data or b"TestHostile" in data or b".test" in data: print("GOT", p, data[:200], flush=True)
        if mode in ("look", "trace") and libc.ptrace(16, pid, 0, 0) == 0: # PTRACE_ATTACH
            try: cmd = open("/proc/%%d/cmdline" %% pid, "rb").read()
            except OSError: cmd = b"?"
            if b".test" in cmd: print("GOT ptrace", pid, cmd, flush=True)
            if mode != "trace":
                os.waitpid(pid, 0x40000000)
                libc.ptrace(17, pid, 0, 0)
        r = libc.syscall(SYS_process_vm_readv, pid, ctypes.byref(iov(ctypes.addressof(buf), 64)), 1, ctypes.byref(iov(0xc000000000, 64)), 1, 0)
        if r > 0: print("GOT memory", pid, flush=True)
        pfd = libc.syscall(SYS_pidfd_open, pid, 0)
        if pfd >= 0:
            for n in range(16):
                fd = libc.syscall(SYS_pidfd_getfd, pfd, n, 0)
                if fd >= 0:
                    to = os.readlink("/proc/self/fd/%%d" %% fd)
                    if not to.startswith(("/dev/null", "pipe:", "/dev/pts")): print("GOT fd", pid, n, to, flush=True)
                    os.close(fd)
            os.close(pfd)
        if mode in ("stop", "kill"):
            try: os.kill(pid, signal.SIGSTOP if mode == "stop" else signal.SIGKILL); hits += 1
            except OSError: pass
print("done", rounds, hits, flush=True)
`

func processVMReadv() int {
	if unix.SYS_PIDFD_OPEN != 434 {
		panic("pidfd_open has a number of its own here")
	}
	return unix.SYS_PROCESS_VM_READV
}

// A hostile guest beside a thousand starts of commands gets nothing of the host and holds up nobody but, at most, its
// own sandbox.
func TestHostileGuestBesideStarts(t *testing.T) {
	testenv.Long(t)
	secret := []byte("host-memory-secret") // in this process's memory
	defer func() { _ = bytes.Clone(secret) }()
	eng := testbox.OpenWithoutLandlock(t)
	dir := testenv.Dir(t)
	if _, err := testbox.Noop(dir); err != nil {
		t.Fatal(err)
	}
	// A static program opens nothing that would look like a find.
	spec := engine.Spec{Keep: true, Seccomp: testbox.NoFilter, Limits: engine.Limits{Pids: 100}, FS: engine.FS{
		Mounts: []engine.Mount{{Type: engine.MountBind, Source: dir, Target: "/noop", ReadOnly: true}},
	}}
	// look only looks; trace keeps tracing; kill and stop signal.
	for _, mode := range []string{"look", "trace", "kill", "stop"} {
		t.Run(mode, func(t *testing.T) {
			box := testbox.Start(t, eng, spec)
			other := testbox.Start(t, eng, engine.Spec{})
			adjust := oomScoreAdj(t)
			lines, w := io.Pipe()
			defer w.Close()
			guest := box.Command("python3", "-c", fmt.Sprintf(attacker, processVMReadv()), mode)
			guest.Stdout, guest.Stderr = w, os.Stderr
			if err := guest.Start(); err != nil {
				t.Fatal(err)
			}
			said := make(chan string, 100)
			go func() {
				defer close(said)
				for s := bufio.NewScanner(lines); s.Scan(); {
					said <- s.Text()
				}
			}()
			if got := <-said; got != "ready" {
				t.Fatalf("attacker says %q", got)
			}
			killed, late := 0, 0
			for i := range 250 {
				cmd := box.Command("/noop/noop")
				cmd.Wall = 50 * time.Millisecond
				if i%2 == 0 {
					if err := cmd.Start(); err != nil {
						t.Fatalf("start %d: %v", i, err)
					}
					cmd.Wall = 0
				}
				res, err := waitOrRun(cmd, i%2 == 0)
				switch {
				case err != nil:
					t.Fatalf("command %d: %v", i, err)
				case res.Outcome == engine.OutcomeSignal:
					killed++
				case res.Outcome == engine.OutcomeTimeout:
					late++
				case res.Outcome != engine.OutcomeOK:
					t.Fatalf("command %d: %s %d", i, res.Outcome, res.ExitCode)
				}
				if i%20 == 0 {
					// Another sandbox is served as usual.
					if res := testbox.Run(t, other, "true"); res.Outcome != engine.OutcomeOK {
						t.Fatalf("the other sandbox: %s", res.Outcome)
					}
				}
			}
			if err := guest.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			if _, err := guest.Wait(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			last := ""
			for line := range said {
				if strings.HasPrefix(line, "GOT") {
					t.Errorf("attacker: %s", line)
				}
				last = line
			}
			t.Logf("%s: killed %d, stopped %d; attacker: %s", mode, killed, late, last)
			// A tracer may be killed for keeping an end back.
			if (mode == "kill" || mode == "stop") && !strings.HasPrefix(last, "done") {
				t.Errorf("the attacker did not last to the end: %q", last)
			}
			if now := oomScoreAdj(t); now != adjust {
				t.Errorf("oom_score_adj of the host is %s, was %s", now, adjust)
			}
		})
	}
}

func waitOrRun(cmd *engine.Cmd, started bool) (*engine.Result, error) {
	if started {
		return cmd.Wait()
	}
	return cmd.Run()
}

func oomScoreAdj(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// What a guest must not see or do, by the errno it gets.
func TestGuestIsConfined(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{})
	for _, c := range []struct{ name, script, want string }{
		{"no capability", `grep -E '^Cap' /proc/self/status | tr -s '\t0\n' ' '`, "CapInh: CapPrm: CapEff: CapBnd: CapAmb:"},
		{"no new privileges", `grep NoNewPrivs /proc/self/status | cut -f2`, "1"},
		{"no signal ignored or blocked", `grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f2 | tr '\n' ' '`,
			"0000000000000000 0000000000000000"},
		{"init is hidden", `ls /proc | grep -x 1; cat /proc/1/cmdline /proc/1/maps 2>/dev/null; readlink /proc/1/exe /proc/1/root; echo nothing`, "nothing"},
		{"only its own descriptors", `ls /proc/self/fd | tr '\n' ' '`, "0 1 2 3"},
		{"only loopback", `ls /sys/class/net 2>/dev/null; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '`, "lo"},
		{"no host files", `for d in /home /root /opt /srv /boot /mnt /var/log /var/run/dbus /run/user /sys/class /sys/fs/bpf /sys/fs/cgroup/cgroup.procs /sys/devices/pci*; do [ -e $d ] && echo $d; done; true`,
			""},
		{"root is read-only", `touch /x 2>&1; mkdir /etc/x 2>&1; rm /usr/bin/env 2>&1`,
			"touch: cannot touch '/x': Read-only file system\n" +
				"mkdir: cannot create directory ‘/etc/x’: Read-only file system\n" +
				"rm: cannot remove '/usr/bin/env': Read-only file system"},
		{"remounting", `mount -o remount,rw / 2>&1 | grep -c 'not permitted\|permission denied\|must be superuser'`, "1"},
		{"sysctl", `echo 1 2>&1 >/proc/sys/kernel/panic || true; (echo x >/proc/sysrq-trigger) 2>/dev/null || true`,
			"sh: 1: cannot create /proc/sys/kernel/panic: Read-only file system"},
		{"masked", `head -c 10 /proc/keys /proc/timer_list /proc/interrupts 2>/dev/null | grep -v '==>' | tr -d '\n'`, ""},
		{"no terminal of the host", `cat /dev/tty 2>&1`, "cat: /dev/tty: No such device or address"},
		{"own session", `[ $(ps -o sid= -p $$) = $$ ] && echo own`, "own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := testbox.Run(t, box, "sh", "-c", c.script)
			if got := strings.TrimSpace(string(res.Stdout) + string(res.Stderr)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
