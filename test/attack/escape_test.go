//go:build linux

package attack_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// The host's executable cannot be reached by the name that a process has for its own: by a link, by a script's
// interpreter, or directly (CVE-2019-5736).
func TestHostExecutableIsOutOfReach(t *testing.T) {
	dir := testenv.Dir(t)
	if err := os.Symlink("/proc/self/exe", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("#!/proc/self/exe -test.list=.\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	box := testbox.Sandbox(t, engine.Spec{Keep: true, FS: engine.FS{Mounts: []engine.Mount{testbox.Bind(dir, "/x")}}})
	for _, name := range []string{"/proc/self/exe", "/x/link", "/x/script"} {
		res, err := box.CommandContext(testbox.Within(t, time.Minute), name, "-test.list=.").Run()
		if err == nil && (res.Outcome == engine.OutcomeOK || len(res.Stdout) > 0) {
			t.Errorf("%s: %s, stdout %q", name, res.Outcome, res.Stdout)
		}
	}
}

func TestNoUserNamespaceInside(t *testing.T) {
	eng := testbox.Open(t)
	for _, c := range []struct {
		filter engine.Seccomp
		want   string
	}{{engine.Seccomp{}, "Operation not permitted"}, {testbox.NoFilter, "No space left on device"}} {
		for range 2 { // from nothing, and from a template
			box := testbox.Start(t, eng, engine.Spec{User: &engine.User{}, Seccomp: c.filter})
			res := testbox.Run(t, box, "unshare", "-U", "true")
			if got := string(res.Stderr); res.Outcome != engine.OutcomeExit || !strings.Contains(got, c.want) {
				t.Errorf("%s, stderr %q; want %s", res.Outcome, got, c.want)
			}
		}
	}
}

// A guest does not see the session keyring of the host.
func TestKeyringIsNotShared(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Seccomp: testbox.NoFilter})
	runtime.LockOSThread() // for good: the keyring is the thread's, and ends with it
	if _, err := unix.KeyctlJoinSessionKeyring("tegmen-test"); err != nil {
		t.Skipf("needs session keyrings: %v", err)
	}
	if _, err := unix.AddKey("user", "tegmen-secret", []byte("x"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", "tegmen-secret", 0); err != nil {
		t.Fatalf("outside: %v", err)
	}
	res := testbox.Run(t, box, "python3", "-c", `
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
r = libc.syscall(`+strconv.Itoa(unix.SYS_KEYCTL)+`, 10, -3, b"user", b"tegmen-secret", 0)
print("found" if r >= 0 else errno.errorcode[ctypes.get_errno()])`)
	if got := strings.TrimSpace(string(res.Stdout)); got != "ENOKEY" {
		t.Errorf("inside: %q, stderr %s; want ENOKEY", got, res.Stderr)
	}
}

// A guest that traces a command from one of its threads, and never waits for its end, cannot hide that end from the
// host.
func TestTracerCannotHoldBackAnEnd(t *testing.T) {
	testenv.Long(t)
	box := testbox.Start(t, testbox.OpenWithoutLandlock(t), engine.Spec{Keep: true, Seccomp: testbox.NoFilter})
	tracer := box.Command("python3", "-c", `
import ctypes, os, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def seize():
    open("/tmp/looking", "w").close()
    while True:
        for pid in os.listdir("/proc"):
            try: cmd = open("/proc/%s/cmdline" % pid, "rb").read()
            except OSError: continue
            if cmd == b"sleep\x002.5\x00" and libc.ptrace(0x4206, int(pid), 0, 0) == 0:
                open("/tmp/seized", "w").close()
                time.sleep(1000)
threading.Thread(target=seize).start()`)
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	// An interpreter may take longer to start than the victim lives.
	testbox.Output(t, box, "until [ -e /tmp/looking ]; do :; done")
	victim := box.Command("sleep", "2.5")
	victim.Wall = 20 * time.Second
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if res := testbox.Run(t, box, "sh", "-c", "until [ -e /tmp/seized ]; do :; done"); res.Outcome != engine.OutcomeOK {
		t.Fatalf("nothing was traced: %s", res.Outcome)
	}
	if res, err := victim.Wait(); err != nil || res.Outcome != engine.OutcomeOK {
		t.Errorf("%+v, %v", res, err)
	}
	if d := time.Since(begin); d > 8*time.Second {
		t.Errorf("its end was kept back for %v", d-2500*time.Millisecond)
	}
}

// pid 1 can never be traced, read or ended: the first command of a sandbox tries when pid 1 has hardly begun to run.
func TestPid1IsOutOfReach(t *testing.T) {
	testenv.Long(t)
	eng := testbox.OpenWithoutLandlock(t)
	for range 20 {
		box := testbox.Start(t, eng, engine.Spec{User: &engine.User{}, Seccomp: testbox.NoFilter})
		res := testbox.Run(t, box, "python3", "-c", `
import ctypes, errno, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, r): print(name, "did it" if r >= 0 else errno.errorcode[ctypes.get_errno()])
tried("attach", libc.ptrace(16, 1, 0, 0))
tried("seize", libc.ptrace(0x4206, 1, 0, 0))
fd = libc.syscall(434, 1, 0) # pidfd_open
tried("getfd", libc.syscall(438, fd, 0, 0))
os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGKILL) # no effect, from inside
print(os.path.exists("/proc/1"))`)
		if got, want := string(res.Stdout), "attach EPERM\nseize EPERM\ngetfd EPERM\nFalse\n"; got != want ||
			res.Outcome != engine.OutcomeOK {
			t.Fatalf("%s, got %q, want %q; stderr %s", res.Outcome, got, want, res.Stderr)
		}
	}
}

// Everything but pipes is copied, and descriptors that lead further are refused.
func TestStandardStreamsLeadNowhere(t *testing.T) {
	testbox.EachLevel(t, testStandardStreamsLeadNowhere)
}

func testStandardStreamsLeadNowhere(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{Keep: true})
	dir, err := os.Open(testenv.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	sock, other := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer sock.Close()
	defer other.Close()
	file, err := os.Create(filepath.Join(testenv.Dir(t), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	cmd := box.Command("true")
	cmd.Stdin = dir
	if err := cmd.Start(); err == nil {
		t.Error("a directory was passed on")
	}
	for name, f := range map[string]*os.File{"a datagram socket": sock, "a file": file} {
		cmd := box.CommandContext(testbox.Within(t, time.Minute), "sh", "-c", "readlink /proc/self/fd/1 >&2")
		cmd.Stdout = f
		res, err := cmd.Run()
		if err != nil || !strings.HasPrefix(string(res.Stderr), "pipe:") {
			t.Errorf("%s: %+v, %v; want a pipe in its place", name, res, err)
		}
	}
}

// If a guest makes this process the parent of a child (CLONE_PARENT), it reaps the child. Otherwise the sandbox could
// not end.
func TestOrphansDoNotKeepASandboxFromEnding(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Seccomp: testbox.NoFilter})
	res := testbox.Run(t, box, "python3", "-c", `
import ctypes, os
libc = ctypes.CDLL(None)
for _ in range(3):
    if libc.syscall(`+strconv.Itoa(unix.SYS_CLONE)+`, 0x8000 | 17, 0, 0, 0, 0) == 0: os._exit(0) # CLONE_PARENT
other = os.fork()
if other == 0:
    if libc.syscall(`+strconv.Itoa(unix.SYS_CLONE)+`, 0x8000 | 17, 0, 0, 0, 0) == 0: os._exit(0)
    os._exit(0)
print("made")`)
	if res.Outcome != engine.OutcomeOK || string(res.Stdout) != "made\n" {
		t.Fatalf("%s, stdout %q, stderr %s", res.Outcome, res.Stdout, res.Stderr)
	}
	ended := make(chan error)
	go func() { ended <- box.Close() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the sandbox does not end")
	}
}
