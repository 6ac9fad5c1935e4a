//go:build linux

package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/seccomp"
)

func TestLandlockFiles(t *testing.T) {
	ws := testenv.Dir(t)
	if os.Geteuid() == 0 {
		if err := os.Chown(ws, testbox.Nobody, testbox.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(testenv.Dir(t), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := testbox.WithoutNamespaces
	s.FS.Workspace = ws
	box := testbox.Start(t, testbox.Landlock.Open(t), s)
	for _, c := range []struct{ script, want string }{
		{"pwd", ws},
		{"mkdir a b && echo x >a/f && mv a/f b/g && ln b/g a/h && cat a/h", "x"},
		{"cat " + secret + " 2>&1", "cat: " + secret + ": Permission denied"},
		{"echo y >$TMPDIR/f && cat $TMPDIR/f && cd ~ && cat f", "y y"},
		{"ls /tmp 2>&1", "ls: cannot open directory '/tmp': Permission denied"},
		{"touch /usr/x 2>&1 | grep -c denied", "1"},
		{"python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"hi\"); print(b.recv(2).decode())'", "hi"},
		{"python3 -B -c pass 2>&1", ""},
		{"kill -0 $PPID 2>&1", "sh: 1: kill: Operation not permitted"},
	} {
		res := testbox.Run(t, box, "sh", "-c", c.script)
		if got := strings.Join(strings.Fields(string(res.Stdout)+string(res.Stderr)), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
	}
}

func TestLandlockRefuses(t *testing.T) {
	eng := testbox.Landlock.Open(t)
	old := testbox.Landlock.Host(t)
	old.Landlock = 5
	for _, c := range []struct {
		name string
		with func(*engine.Spec)
	}{
		{"root", func(s *engine.Spec) { s.FS.Root = "/usr" }},
		{"hostname", func(s *engine.Spec) { s.Hostname = "h" }},
		{"mount elsewhere", func(s *engine.Spec) { s.FS.Mounts = []engine.Mount{testbox.Bind("/usr", "/x")} }},
		{"tmpfs", func(s *engine.Spec) { s.FS.Mounts = []engine.Mount{{Type: engine.MountTmpfs, Target: "/x"}} }},
		{"no filter", func(s *engine.Spec) { s.Seccomp = testbox.NoFilter }},
	} {
		s := testbox.WithoutNamespaces
		c.with(&s)
		if _, err := eng.Compile(s); !errors.Is(err, engine.ErrUnsupported) {
			t.Errorf("%s: got %v, want ErrUnsupported", c.name, err)
		}
	}
	if _, err := engine.Compile(testbox.WithoutNamespaces, old); !errors.Is(err, engine.ErrUnsupported) ||
		!strings.Contains(err.Error(), "6.12") {
		t.Errorf("an old Landlock: %v", err)
	}
	// If there are namespaces, accepting their absence changes nothing.
	h := testbox.Landlock.Host(t)
	h.TryNamespaces = nil
	if p, err := engine.Compile(testbox.WithoutNamespaces, h); err != nil || len(p.Dropped) > 0 {
		t.Errorf("with namespaces: %v, %v", p, err)
	}
}

// If a host is killed, the next one removes its directories.
func TestLandlockDirectoriesAreSwept(t *testing.T) {
	temp := testenv.Dir(t)
	t.Setenv("TMPDIR", temp)
	left := filepath.Join(temp, "tegmen-private-left")
	if err := os.MkdirAll(filepath.Join(left, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(left, testbox.Nobody, testbox.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	eng := testbox.Landlock.Open(t)
	one := testbox.Start(t, eng, testbox.WithoutNamespaces)
	// Another engine finds the directory of the first one, which is in use.
	two := testbox.Start(t, testbox.Landlock.Open(t), testbox.WithoutNamespaces)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	for _, box := range []*engine.Sandbox{one, two} {
		if res := testbox.Run(t, box, "touch", "f"); res.Outcome != engine.OutcomeOK {
			t.Errorf("%s, stderr %s", res.Outcome, res.Stderr)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
	if names, err := os.ReadDir(temp); err != nil || len(names) > 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}

// In a container of docker, namespaces and clone3 are refused. The command says so, and runs without them if that is
// accepted.
func TestInAContainer(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Landlock(6))
	container := containerWithCommand(t, func(*seccomp.Policy) {})
	res := testbox.Run(t, container, "/opt/bin/tegmen", "run", "--", "true")
	if got := string(res.Stderr); res.ExitCode != 125 || strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, "namespaces") {
		t.Errorf("exit code %d, stderr %q; want one line about namespaces", res.ExitCode, got)
	}
	res = testbox.Run(t, container, "/opt/bin/tegmen", "run", "--degrade", "namespaces", "--", "sh", "-c",
		"pwd; sleep 1000 & cat /workspace/x; echo $?")
	if got := string(res.Stdout); res.ExitCode != 0 || !strings.HasPrefix(got, "/tmp/tegmen-private-") ||
		!strings.HasSuffix(got, "\n1\n") {
		t.Errorf("exit code %d, stdout %q, stderr %s", res.ExitCode, got, res.Stderr)
	}
	if got := string(res.Stderr); !strings.Contains(got, "tegmen: ran without namespaces: ") {
		t.Errorf("stderr %q: want what was lost", got)
	}
	if res := testbox.Run(t, container, "sh", "-c", "ls -d /tmp/tegmen-private-*; pgrep sleep"); len(res.Stdout) > 0 {
		t.Errorf("left behind: %s", res.Stdout)
	}
}

// If Landlock is refused as well, no isolation is left: the command says so, and runs with a warning only if that is
// accepted.
func TestInAContainerWithoutLandlock(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Program("bash"))
	container := containerWithCommand(t, func(p *seccomp.Policy) {
		for i := range p.Syscalls {
			p.Syscalls[i].Names = slices.DeleteFunc(p.Syscalls[i].Names,
				func(name string) bool { return strings.HasPrefix(name, "landlock_") })
		}
	})
	for _, flags := range [][]string{nil, {"--degrade", "namespaces"}} {
		res := testbox.Run(t, container, "/opt/bin/tegmen", append(append([]string{"run"}, flags...), "--", "echo", "ran")...)
		if got := string(res.Stderr); res.ExitCode != 125 || strings.Count(got, "\n") != 1 || len(res.Stdout) > 0 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want one line", flags, res.ExitCode, res.Stdout, got)
		}
	}
	const script = "pwd; sleep 1000 & ulimit -f; ulimit -n; ulimit -H -t; ulimit -c; exit 7" // in blocks of 512 bytes
	res := testbox.Run(t, container, "/opt/bin/tegmen", "run", "--allow-no-isolation", "--ulimit", "fsize=1048576",
		"--ulimit", "nofile=99", "--ulimit", "cpu=5", "--", "sh", "-c", script)
	if got := string(res.Stdout); res.ExitCode != 7 || !strings.HasPrefix(got, "/tmp/tegmen-private-") ||
		!strings.HasSuffix(got, "\n2048\n99\n6\n0\n") {
		t.Errorf("exit code %d, stdout %q, stderr %s", res.ExitCode, got, res.Stderr)
	}
	if got := string(res.Stderr); !strings.HasPrefix(got,
		"tegmen: warning: no isolation: namespaces are refused") || strings.Count(got, "\n") != 1 {
		t.Errorf("stderr %q: want one line that warns", got)
	}
	if res := testbox.Run(t, container, "sh", "-c", "ls -d /tmp/tegmen-private-*; pgrep sleep"); len(res.Stdout) > 0 {
		t.Errorf("left behind: %s", res.Stdout)
	}
}

// containerWithCommand starts a sandbox with a changed filter of docker, and with tegmen in /opt/bin.
func containerWithCommand(t *testing.T, change func(*seccomp.Policy)) *engine.Sandbox {
	t.Helper()
	testenv.Need(t, testenv.Program("go"))
	p, err := seccomp.Parse(testenv.DockerProfile(t))
	if err != nil {
		t.Fatal(err)
	}
	change(p)
	eng := testbox.Open(t)
	// A command that was built before is a link.
	tegmen, err := filepath.EvalSymlinks(filepath.Join(testbox.CommandDir(t), "tegmen"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(tegmen)
	plan := testbox.CompilePolicy(t, eng, engine.Spec{Seccomp: engine.Seccomp{Policy: p},
		FS: engine.FS{Mounts: []engine.Mount{{Source: dir, Target: "/opt/bin", ReadOnly: true}}}})
	container, err := eng.StartPlan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := container.Close(); err != nil {
			t.Error(err)
		}
	})
	return container
}

// A guest can be a subreaper, which adopts orphans. When it ends, the reaper gets them: none is lost.
func TestSubreapersDoNotHideATree(t *testing.T) {
	mark := testbox.Marker(900)
	box := testbox.Start(t, testbox.Landlock.Open(t), testbox.WithoutNamespaces)
	res := testbox.Run(t, box, "python3", "-c", `
import ctypes, os, sys
libc = ctypes.CDLL(None)
def nest(depth):
    libc.prctl(36, 1, 0, 0, 0) # PR_SET_CHILD_SUBREAPER
    if os.fork(): return
    os.setsid()
    if depth: nest(depth - 1)
    else: os.execvp("sleep", ["sleep", sys.argv[1]])
nest(5)`, mark)
	if res.Outcome != engine.OutcomeOK {
		t.Fatalf("%s, stderr %s", res.Outcome, res.Stderr)
	}
	testbox.Runs(t, mark)
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if left := testbox.Alive(t, mark); len(left) > 0 {
		t.Errorf("alive after Close: %v", left)
	}
}
