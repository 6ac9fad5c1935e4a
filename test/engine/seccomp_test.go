//go:build linux

package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// Refused calls are listed, and answered as without an audit.
func TestAuditListsRefusals(t *testing.T) {
	const script = `
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tried(r): print("ok" if r >= 0 else errno.errorcode[ctypes.get_errno()])
for i in range(3): tried(libc.mount(b"x", b"/tmp", b"tmpfs", 0, None))
tried(libc.unshare(0x10000000))
try: socket.socket(38, 5, 0)
except OSError as e: print(errno.errorcode[e.errno])
if os.fork() == 0:
    libc.syscall(175, 0, 0, 0) if os.uname().machine == "x86_64" else libc.syscall(105, 0, 0, 0) # init_module
    os._exit(0)
print(os.wait()[1] & 127)`
	eng := testbox.Open(t)
	want := ""
	for _, audit := range []bool{false, true} {
		box := testbox.Start(t, eng, engine.Spec{Seccomp: engine.Seccomp{Audit: audit}})
		res := testbox.Run(t, box, "python3", "-c", script)
		got := strings.Join(strings.Fields(string(res.Stdout)), " ")
		if want == "" {
			want = got
		}
		if res.Outcome != engine.OutcomeOK || got != want || want != "EPERM EPERM EPERM EPERM EAFNOSUPPORT 31" {
			t.Errorf("audit %v: %s, got %q, want %q; stderr %s", audit, res.Outcome, got, want, res.Stderr)
		}
		listed := []engine.Refusal{{Call: "init_module", Action: "kill", Count: 1},
			{Call: "mount", Action: "EPERM", Count: 3},
			{Call: "socket", Action: "EAFNOSUPPORT", Count: 1}, {Call: "unshare", Action: "EPERM", Count: 1}}
		if !audit {
			listed = nil
		}
		if !slices.Equal(res.Refused, listed) {
			t.Errorf("audit %v: listed %v, want %v", audit, res.Refused, listed)
		}
	}
}

// An audit survives thousands of refusals from many processes at once, some of which are killed while they wait for an
// answer.
func TestAuditUnderLoad(t *testing.T) { testbox.EachLevel(t, testAuditUnderLoad, testbox.Confined...) }

func testAuditUnderLoad(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{Keep: true, Seccomp: engine.Seccomp{Audit: true}})
	res := testbox.Run(t, box, "python3", "-c", `
import ctypes, os, signal
libc = ctypes.CDLL(None)
kids = []
for i in range(8):
    pid = os.fork()
    if pid == 0:
        n = 0
        while i % 2 or n < 500: libc.unshare(0x10000000); n += 1
        os._exit(0)
    kids.append(pid)
for i, pid in enumerate(kids):
    if i % 2 == 0: os.waitpid(pid, 0)
for i, pid in enumerate(kids):
    if i % 2: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
print("done")`)
	if res.Outcome != engine.OutcomeOK || len(res.Refused) != 1 || res.Refused[0].Count < 2000 {
		t.Errorf("%s, stdout %q, %v; want 2000 or more", res.Outcome, res.Stdout, res.Refused)
	}
}

// Nothing but the command can be executed, by any way there is.
func TestNoExec(t *testing.T) {
	eng := testbox.Open(t)
	for i, profile := range []string{"default", "strict", "debug", "default"} {
		// The last time with an audit: the two filters do not disturb each other.
		box := testbox.Start(t, eng, engine.Spec{Keep: true,
			Seccomp: engine.Seccomp{Profile: profile, NoExec: true, Audit: i == 3}})
		res := testbox.Run(t, box, "python3", "-c", `
import ctypes, errno, os, threading
libc = ctypes.CDLL(None, use_errno=True)
def word(f):
    try: f(); print("ran", flush=True)
    except OSError as e: print(errno.errorcode[e.errno], flush=True)
word(lambda: os.execv("/bin/true", ["true"]))
word(lambda: os.execv("/proc/self/exe", ["python3", "-c", "print('ran')"]))
word(lambda: os.execve(os.open("/bin/true", os.O_RDONLY), ["true"], {}))
pid = os.fork()
if pid == 0:
    word(lambda: os.execv("/bin/true", ["true"]))
    os._exit(0)
os.waitpid(pid, 0)
nr, nrat = (59, 322) if os.uname().machine == "x86_64" else (221, 281)
argv = (ctypes.c_char_p * 2)(b"true", None)
for cookie in (0, 1, 0x0101010101010101, -1): # what one might guess
    r = libc.syscall(nr, b"/bin/true", argv, None, ctypes.c_long(cookie)); print(errno.errorcode[ctypes.get_errno()])
    r = libc.syscall(nrat, -100, b"/bin/true", argv, None, 0, ctypes.c_long(cookie)); print(errno.errorcode[ctypes.get_errno()])
t = threading.Thread(target=print, args=("threads",)); t.start(); t.join()`)
		want := strings.Repeat("EPERM ", 12) + "threads"
		if got := strings.Join(strings.Fields(string(res.Stdout)), " "); res.Outcome != engine.OutcomeOK || got != want {
			t.Errorf("%s: %s, got %q, want %q; stderr %s", profile, res.Outcome, got, want, res.Stderr)
		}
		// A second command has another cookie.
		if res := testbox.Run(t, box, "true"); res.Outcome != engine.OutcomeOK {
			t.Errorf("%s: a second command: %s", profile, res.Outcome)
		}
	}
}

func TestProfiles(t *testing.T) {
	testenv.NoRace(t)
	eng := testbox.Open(t)
	for _, c := range []struct{ profile, script, want string }{
		{"strict", `echo a b | tr ' ' '\n' | sort -r | head -1; python3 -c 'import json, threading, tempfile; f = tempfile.NamedTemporaryFile(); f.write(b"x"); print(json.dumps([1]))'`, "b [1]"},
		{"strict", `python3 -c 'import socket
for f in socket.AF_UNIX, socket.AF_INET:
    try: socket.socket(f, socket.SOCK_STREAM)
    except PermissionError: print("refused")'`, "refused refused"},
		{"default", `python3 -c 'import socket
a = socket.create_server(("127.0.0.1", 0)); b = socket.create_connection(a.getsockname()); a.accept()[0].sendall(b"hi"); print(b.recv(2).decode())'`, "hi"},
		{"default", `python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))'`, "-1"},
		{"debug", `python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))'`, "0"},
		{"off", `grep Seccomp: /proc/self/status`, "Seccomp: 0"},
	} {
		box := testbox.Start(t, eng, engine.Spec{Seccomp: engine.Seccomp{Profile: c.profile}})
		res := testbox.Run(t, box, "sh", "-c", c.script)
		if got := strings.Join(strings.Fields(string(res.Stdout)), " "); got != c.want {
			t.Errorf("%s: got %q, want %q; %s, stderr %s", c.profile, got, c.want, res.Outcome, res.Stderr)
		}
	}
}

// A user-supplied policy is enforced, and one with which nothing could start is refused before anything starts.
func TestPolicyOfOnesOwn(t *testing.T) {
	eng := testbox.Open(t)
	p, err := seccomp.Parse([]byte(`{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["uname"], "action": "SCMP_ACT_ERRNO", "errnoRet": 5}]}`))
	if err != nil {
		t.Fatal(err)
	}
	plan := testbox.CompilePolicy(t, eng, engine.Spec{Seccomp: engine.Seccomp{Policy: p}})
	box, err := eng.StartPlan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if res := testbox.Run(t, box, "uname"); !strings.Contains(string(res.Stderr), "Input/output error") {
		t.Errorf("%s, stdout %q, stderr %s", res.Outcome, res.Stdout, res.Stderr)
	}
	p.Syscalls = append(p.Syscalls, seccomp.Rule{Names: []string{"execve", "prctl"}, Action: seccomp.Errno})
	if _, err := eng.Compile(engine.Spec{Seccomp: engine.Seccomp{Policy: p}}); !errors.Is(err, engine.ErrInvalid) ||
		!strings.Contains(err.Error(), "prctl, execve") {
		t.Errorf("got %v, want ErrInvalid that names what is missing", err)
	}
}

// The gate runs before the guest's program, as the guest's user, and cannot be inspected: it has a capability that
// guests lack.
func TestPrivilegesAreGone(t *testing.T) {
	testenv.NoRace(t)
	for _, s := range []engine.Seccomp{{}, testbox.NoFilter, {Profile: "strict"}} {
		res := testbox.Run(t, testbox.Sandbox(t, engine.Spec{User: &engine.User{}, Seccomp: s}), "python3", "-S", "-c", `
import ctypes, resource
for l in open("/proc/self/status"):
    if l.startswith(("Cap", "NoNewPrivs")): print(*l.split())
libc = ctypes.CDLL(None)
print("securebits", libc.prctl(27, 0, 0, 0, 0), libc.prctl(28, 0, 0, 0, 0), libc.prctl(39, 0, 0, 0, 0))
print("core", max(resource.getrlimit(resource.RLIMIT_CORE)) <= 1, "nice", resource.getrlimit(13), "rtprio", resource.getrlimit(14))
print("oom", open("/proc/self/oom_score_adj").read())`)
		got := strings.Join(strings.Fields(string(res.Stdout)), " ")
		const want = "CapInh: 0000000000000000 CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 CapAmb: 0000000000000000 " +
			"NoNewPrivs: 1 securebits 239 -1 1 core True nice (0, 0) rtprio (0, 0) oom 1000"
		if got != want {
			t.Errorf("%+v: got\n%s\nwant\n%s\n%s", s, got, want, res.Stderr)
		}
	}
}
