//go:build linux

package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A guest cannot turn the workspace into a repository. Where there is no valid .git, git takes any directory with
// HEAD, objects and refs for a repository, and obeys its settings. objects and refs may be where commondir says.
func TestWorkspaceDoesNotBecomeARepository(t *testing.T) {
	testenv.Need(t, testenv.Program("git"))
	const settings = `printf '[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = "echo >ran; false"\n' >`
	for name, c := range map[string]struct {
		init   bool
		script string
	}{
		"without .git":   {false, `mkdir objects refs; ` + settings + `config`},
		"with .git":      {true, `rm .git/HEAD; mkdir objects refs; ` + settings + `config`},
		"with commondir": {false, `mkdir -p d/objects d/refs; echo d >commondir; ` + settings + `d/config`},
	} {
		ws := testbox.Workspace(t)
		git := func(args ...string) string {
			cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
			cmd.Dir, cmd.Env = ws, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(ws))
			out, _ := cmd.CombinedOutput() // that it fails is well
			return string(out)
		}
		if c.init {
			git("init", "-q")
			_ = exec.Command("chmod", "-R", "go+rwX", filepath.Join(ws, ".git")).Run() // root's guests are others
		}
		box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws}})
		_ = testbox.Run(t, box, "sh", "-c", c.script+"; echo ref: refs/heads/x >HEAD")
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		git("status")
		if _, err := os.Stat(filepath.Join(ws, "ran")); err == nil {
			t.Errorf("%s: git on the host has executed what the guest wrote", name)
		}
		if got := git("config", "core.fsmonitor"); strings.Contains(got, "ran") {
			t.Errorf("%s: git on the host has a setting of the guest's: %s", name, got)
		}
	}
}

// Without namespaces, every profile refuses the calls that Landlock does not check.
func TestStrictWithoutNamespacesLeavesTheHostAlone(t *testing.T) {
	testenv.Need(t, testenv.Landlock(6))
	dir := testenv.Dir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "60") // a process of the host's, the account's
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	s := testbox.WithoutNamespaces
	s.Seccomp.Profile = "strict"
	res := testbox.Run(t, testbox.Start(t, testbox.Landlock.Open(t), s), "python3", "-c", fmt.Sprintf(`
import errno, os, resource
def word(name, f):
    try: f(); print(name)
    except OSError as e: pass
pid, file = %d, %q
word("prlimit", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0)))
word("affinity", lambda: os.sched_setaffinity(pid, {0}))
word("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
word("chmod", lambda: os.chmod(file, 0o666))
word("utime", lambda: os.utime(file, (1, 1)))
`, other.Process.Pid, file))
	if len(res.Stdout) > 0 || res.Outcome != engine.OutcomeOK {
		t.Errorf("%s, the guest did: %s; %s", res.Outcome, strings.Fields(string(res.Stdout)), res.Stderr)
	}
}

// orphans makes thousands of sleeping children of the reaper, which it must look through, and then more dead ones than
// it can reap. It ends by itself.
const orphans = `
#include <stdio.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/wait.h>
int main(void) {
	struct rlimit r = {5500, 5500};
	int i, k, p;
	setrlimit(RLIMIT_NPROC, &r);
	for (k = 0; k < 8; k++) if (!fork()) {
		for (i = 0; i < 500; i++) if (!fork()) { alarm(20); pause(); }
		_exit(0);
	}
	while (wait(0) > 0);
	for (k = 0; k < 8; k++) if (!fork()) {
		for (alarm(20);;) {
			if (!(p = vfork())) {
				for (i = 0; i < 20; i++) if (!fork()) _exit(0);
				_exit(0);
			}
			if (p > 0) waitpid(p, 0, 0);
		}
	}
	alarm(20);
	for (i = 0; i < 20000 && (p = fork()) >= 0; i++) { // until the dead ones are too many
		if (!p) _exit(0);
		waitpid(p, 0, 0);
	}
	puts("ready"); fflush(stdout); pause();
}
`

// The reaper ends its tree, however many orphans it must reap meanwhile.
func TestOrphansDoNotKeepTheReaperBusy(t *testing.T) {
	testenv.Need(t, testenv.Program("cc"))
	dir := testenv.Dir(t)
	cc := exec.Command("cc", "-static", "-O1", "-w", "-x", "c", "-o", filepath.Join(dir, "orphans"), "-")
	cc.Stdin = strings.NewReader(orphans)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := testbox.WithoutNamespaces
	s.FS.Mounts = []engine.Mount{{Type: engine.MountBind, Source: dir, Target: dir, ReadOnly: true}}
	s.Limits.Pids = engine.UnlimitedCount // the watchdog would end them sooner
	box := testbox.Start(t, testbox.Landlock.Open(t), s)
	cmd := box.Command(filepath.Join(dir, "orphans"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := r.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- box.Close() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the sandbox does not end")
		<-ended
	}
	_, _ = cmd.Wait() // killed, or not
}

// Whatever a guest leaves in its private directory, the directory is removed.
func TestPrivateDirectoryGoes(t *testing.T) {
	testenv.Long(t)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 1024 // which is what many hosts have
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	eng := testbox.Landlock.Open(t)
	for name, script := range map[string]string{
		"one that nobody may enter": `import os
os.mkdir("d"); open("d/f", "w"); os.fchmod(os.open("d", os.O_RDONLY), 0)`,
		"itself": `import os
os.fchmod(os.open("..", os.O_RDONLY), 0)`,
		"more in each other than there are descriptors": `import os
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")`,
	} {
		box, err := eng.Start(t.Context(), testbox.WithoutNamespaces)
		if err != nil {
			t.Fatal(err)
		}
		res := testbox.Run(t, box, "sh", "-c", `pwd; exec python3 -c "$0"`, script)
		dir := filepath.Dir(strings.TrimSpace(string(res.Stdout)))
		if err := box.Close(); err != nil {
			t.Errorf("%s: %.200v", name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: %s is still there", name, dir)
			_ = exec.Command("chmod", "-R", "u+rwx", dir).Run()
			_ = os.RemoveAll(dir)
		}
	}
}

// The list of refusals does not grow with the calls that a guest makes up.
func TestAuditIsBounded(t *testing.T) {
	testenv.Long(t)
	box := testbox.Sandbox(t, engine.Spec{Seccomp: engine.Seccomp{Audit: true}})
	res := testbox.Run(t, box, "python3", "-c", `
import ctypes
libc = ctypes.CDLL(None)
for nr in range(1000, 21000): libc.syscall(nr)`)
	if res.Outcome != engine.OutcomeOK || len(res.Refused) > 2000 {
		t.Errorf("%s, a list of %d, %s", res.Outcome, len(res.Refused), res.Stderr)
	}
}

// Refused options and transports cannot be had by another name. A line discipline of a terminal is kernel code that
// loads itself.
func TestRefusedByOtherNames(t *testing.T) {
	res := testbox.Run(t, testbox.Sandbox(t, engine.Spec{}), "python3", "-c", `
import errno, fcntl, os, socket, struct
def word(name, f):
    try: f(); print(name, "ok")
    except OSError as e: print(name, errno.errorcode[e.errno])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for kind in 2, 3: # ESP in UDP, L2TP in UDP
    word("UDP_ENCAP", lambda: s.setsockopt(136, 100, struct.pack("i", kind))) # SOL_UDPLITE
for family in socket.AF_INET, socket.AF_INET6:
    for kind in socket.SOCK_SEQPACKET, 6: # SCTP, DCCP: by the type alone
        word("socket", lambda: socket.socket(family, kind, 0))
tty = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
word("TIOCSETD", lambda: fcntl.ioctl(tty, 0x5423, struct.pack("i", 21))) # N_GSM0710
`)
	const want = "UDP_ENCAP ENOPROTOOPT UDP_ENCAP ENOPROTOOPT socket EPROTONOSUPPORT socket EPROTONOSUPPORT socket EPROTONOSUPPORT socket EPROTONOSUPPORT TIOCSETD EPERM"
	if got := strings.Join(strings.Fields(string(res.Stdout)), " "); got != want {
		t.Errorf("got\n%s\nwant\n%s; %s", got, want, res.Stderr)
	}
}

// One command cannot read the cookie of another. Either could use it.
func TestCookieIsNobodysToRead(t *testing.T) {
	testenv.Long(t)
	eng := testbox.Landlock.Open(t)
	s := testbox.WithoutNamespaces
	s.Seccomp.NoExec = true
	box := testbox.Start(t, eng, s)
	spy := box.Command("python3", "-c", `
import os, sys
print("ready", flush=True)
while True:
    for pid in os.listdir("/proc"):
        if not pid.isdigit(): continue
        try:
            gate = open("/proc/" + pid + "/cmdline", "rb").read()
            if b"/oom_score_adj\x001000" not in gate or pid == str(os.getpid()): continue
            # The descriptor as one character, and no more; the cookie is in the environment.
            if gate.index(b"\0") > 1 or open("/proc/" + pid + "/environ", "rb").read(): print("found", flush=True); sys.exit()
        except OSError: continue`)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spy.Stdout, spy.Wall = w, 10*time.Second
	if err := spy.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := r.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	over := make(chan bool)
	go func() { _, _ = spy.Wait(); close(over) }()
	for {
		select {
		case <-over:
			got := make([]byte, 16)
			if n, _ := r.Read(got); n > 0 {
				t.Error("a cookie was read")
			}
			return
		default:
			cmd := box.CommandContext(testbox.Within(t, time.Minute), "true")
			cmd.ExtraEnv = []string{"PATH=" + strings.Repeat("/nowhere:", 3000) + "/bin"} // its gate has something to do
			if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeOK {
				t.Fatalf("%+v, %v", res, err)
			}
		}
	}
}

// Without namespaces a guest cannot watch a directory that it may not list.
func TestNamesAreNotWatched(t *testing.T) {
	dir := testenv.Dir(t)
	res := testbox.Run(t, testbox.Start(t, testbox.Landlock.Open(t), testbox.WithoutNamespaces), "python3", "-c", `
import ctypes, sys
libc = ctypes.CDLL(None)
if libc.inotify_add_watch(libc.inotify_init(), sys.argv[1].encode(), 0xfff) >= 0: print("watched")`, dir)
	if len(res.Stdout) > 0 {
		t.Error("a guest can watch what is made in a directory of the host")
	}
}

// Without namespaces, a signal that is sent by way of a descriptor (F_SETOWN) stays inside as any other.
func TestSignalsOfDescriptorsStayInside(t *testing.T) {
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	res := testbox.Run(t, testbox.Start(t, testbox.Landlock.Open(t), testbox.WithoutNamespaces), "python3", "-c", `
import fcntl, os, signal, sys
r, w = os.pipe()
fcntl.fcntl(r, 10, signal.SIGTERM) # F_SETSIG
fcntl.fcntl(r, fcntl.F_SETOWN, int(sys.argv[1]))
fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC)
os.write(w, b"x")
signal.signal(signal.SIGTERM, lambda *a: print("own"))
fcntl.fcntl(r, fcntl.F_SETOWN, os.getpid())
os.write(w, b"x")`, strconv.Itoa(other.Process.Pid))
	_ = other.Process.Kill() // a signal before this one counts
	if err := other.Wait(); err == nil || err.Error() != "signal: killed" || string(res.Stdout) != "own\n" {
		t.Errorf("the host's process: %v; %s, stdout %q, stderr %s", err, res.Outcome, res.Stdout, res.Stderr)
	}
}

// The Landlock domain breaks nothing that the mounts allow.
func TestLandlockBreaksNothing(t *testing.T) {
	ws := testbox.Workspace(t)
	res := testbox.Run(t, testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws}}), "python3", "-c", `
import ctypes, os, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("a/b"); os.mkdir("c"); open("a/b/f", "w").close()
os.rename("a/b/f", "c/f"); os.link("c/f", "a/f"); os.rename("a", "c/a") # between directories
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
assert libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, b"linked", 0x400) == 0
f = open("gone", "w+"); os.unlink("gone"); open("/proc/self/fd/%d" % f.fileno(), "r+").truncate(1)
m = os.memfd_create("m"); os.write(m, open("/bin/true", "rb").read())
subprocess.run(["/proc/self/fd/%d" % m], pass_fds=[m], check=True)
s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen(); socket.socket(socket.AF_UNIX).connect("sock")
master, slave = os.openpty(); os.open(os.ttyname(slave), os.O_RDWR | os.O_NOCTTY)
open("/dev/shm/x", "w").close(); os.mkdir("/dev/shm/d"); os.rename("/dev/shm/x", "/dev/shm/d/y")
attr = ctypes.create_string_buffer((1 << 13).to_bytes(8, "little"), 8)
for _ in range(10): assert libc.syscall(446, libc.syscall(444, attr, 8, 0), 0) == 0 # domains of its own
`)
	if res.Outcome != engine.OutcomeOK {
		t.Errorf("%s: %s", res.Outcome, res.Stderr)
	}
}
