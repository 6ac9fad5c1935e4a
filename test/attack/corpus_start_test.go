//go:build linux

package attack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// The command does not lend the privileges of its file to its caller: it refuses to run with any (CVE-2020-5291).
func TestPrivilegedCommandRefuses(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.UserNS, testenv.Program("setpriv"))
	command, dir := filepath.Join(testbox.CommandDir(t), "tegmen"), testenv.Dir(t)
	for _, c := range []struct {
		name  string
		lend  func(file string) error
		works bool
	}{
		{"plain", func(string) error { return nil }, true},
		{"setuid", func(f string) error { return os.Chmod(f, 0o755|os.ModeSetuid) }, false},
		{"setgid", func(f string) error { return os.Chmod(f, 0o755|os.ModeSetgid) }, false},
		{"capability", func(f string) error { return unix.Setxattr(f, "security.capability", capNetRaw, 0) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.works {
				testenv.Need(t, testenv.Suid(dir))
			}
			file := filepath.Join(dir, c.name)
			copyFile(t, command, file, 0o755)
			if err := c.lend(file); err != nil {
				t.Fatal(err)
			}
			out, err := asGuest(file, "run", "--", "echo", "ran").CombinedOutput()
			var exit *exec.ExitError
			if refused := errors.As(err, &exit) && exit.ExitCode() == 125 &&
				strings.Contains(string(out), "setuid"); refused == c.works {
				t.Errorf("%v, %s", err, out)
			}
		})
	}
}

// A command is confined in the same way however it is started: there is one path to it (openai/codex#12800 had two).
func TestEveryWayToStartIsConfined(t *testing.T) {
	eng := testbox.Open(t)
	dir := testenv.Dir(t)
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, testbox.Nobody, testbox.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	run := (*engine.Cmd).Run
	for _, c := range []struct {
		name string
		spec engine.Spec
		run  func(*engine.Cmd) (*engine.Result, error)
	}{
		{"run", engine.Spec{}, run},
		{"from a template", engine.Spec{}, run},
		{"start and wait", engine.Spec{}, func(c *engine.Cmd) (*engine.Result, error) {
			if err := c.Start(); err != nil {
				return nil, err
			}
			return c.Wait()
		}},
		{"output", engine.Spec{}, func(c *engine.Cmd) (*engine.Result, error) {
			out, err := c.Output()
			return &engine.Result{Outcome: engine.OutcomeOK, Stdout: out}, err
		}},
		{"terminal", engine.Spec{}, func(c *engine.Cmd) (*engine.Result, error) {
			c.TTY = &engine.WindowSize{Rows: 24, Cols: 80}
			return c.Run()
		}},
		{"keep", engine.Spec{Keep: true}, run},
		{"root inside", engine.Spec{User: &engine.User{}}, run},
		{"workspace", engine.Spec{FS: engine.FS{Workspace: dir}}, run},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := testbox.Start(t, eng, c.spec)
			res, err := c.run(box.CommandContext(t.Context(), "grep", "-E", "^(Cap...|NoNewPrivs|Seccomp):",
				"/proc/self/status"))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(strings.Fields(string(res.Stdout)), " ")
			const none = "0000000000000000"
			want := fmt.Sprintf("CapInh: %[1]s CapPrm: %[1]s CapEff: %[1]s CapBnd: %[1]s CapAmb: %[1]s NoNewPrivs: 1 Seccomp: 2", none)
			if res.Outcome != engine.OutcomeOK || got != want {
				t.Errorf("%s, got %s, want %s", res.Outcome, got, want)
			}
		})
	}
}

// A guest that signals and ptraces everyone of its account, which is the caller's, reaches nobody.
func TestOthersOfTheAccountAreLeftAlone(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{})
	bystander := asGuest("cat")
	in, err := bystander.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	before := priorities(t, bystander.Process.Pid)
	res := testbox.Run(t, box, "python3", "-c", `
import ctypes, os, signal
try: os.setpriority(os.PRIO_USER, 0, 15)
except PermissionError: pass # of pid 1; the others have it
ctypes.CDLL(None).syscall(`+strconv.Itoa(unix.SYS_IOPRIO_SET)+`, 3, 0, 3 << 13) # IOPRIO_WHO_USER, idle
print("hit", flush=True)
os.kill(-1, signal.SIGKILL)`)
	if got := string(res.Stdout); got != "hit\n" {
		t.Errorf("%s, %q, stderr %s", res.Outcome, got, res.Stderr)
	}
	if now := priorities(t, bystander.Process.Pid); now != before {
		t.Errorf("priorities %s, were %s", now, before)
	}
	if err := errors.Join(in.Close(), bystander.Wait()); err != nil {
		t.Errorf("another process of the account: %v", err)
	}
}

// priorities returns the nice value and the I/O class of a process.
func priorities(t *testing.T, pid int) string {
	t.Helper()
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		t.Fatal(err)
	}
	io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0) // IOPRIO_WHO_PROCESS
	if errno != 0 {
		t.Fatal(errno)
	}
	return fmt.Sprint(nice, io>>13)
}

// A root whose /dev and /proc are swapped for links while sandboxes start from it is refused, or used as it was. The
// targets of the links are never touched (CVE-2019-19921, CVE-2023-27561, CVE-2024-45310, CVE-2026-41579).
func TestRootSwappedWhileStarting(t *testing.T) {
	eng := testbox.Open(t)
	dir := testenv.Dir(t)
	root, victim := dir+"/root", dir+"/victim"
	for _, d := range []string{root, root + "/proc", root + "/dev", root + "/tmp", victim} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := testbox.Noop(root); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(victim, dir+"/dev"), os.Symlink(victim, dir+"/proc")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, victim)
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			for _, name := range []string{"/dev", "/proc"} {
				select {
				case <-stop:
					return
				default:
				}
				_ = unix.Renameat2(unix.AT_FDCWD, dir+name, unix.AT_FDCWD, root+name, unix.RENAME_EXCHANGE)
			}
		}
	})
	started, refused := 0, 0
	for range 200 {
		box, err := eng.Start(context.Background(), engine.Spec{FS: engine.FS{Root: root}})
		if err != nil {
			refused++
			continue
		}
		started++
		if _, err := box.Command("/noop").Run(); err != nil {
			t.Errorf("%v", err)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	swapping.Wait()
	t.Logf("%d started, %d refused", started, refused)
	if refused == 0 {
		t.Error("none was refused: nothing was tested")
	}
	if now := snapshot(t, victim); now != before {
		t.Errorf("what the links lead to is\n%s\nand was\n%s", now, before)
	}
}

// A missing mount point is not created on the host: no placeholder of a protected file is left behind (CVE-2026-25725,
// CVE-2024-45310).
func TestNothingIsMadeOnTheHost(t *testing.T) {
	eng := testbox.Open(t)
	dir := testenv.Dir(t)
	for _, d := range []string{dir + "/ws", dir + "/ws/there", dir + "/src"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir+"/ws", testbox.Nobody, testbox.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	// Placeholders come and go: the tests of test/workspace are about them.
	open := []string{"."}
	before := snapshot(t, dir)
	for _, c := range []struct {
		target string
		works  bool
	}{{"there", true}, {"missing", false}, {"missing/deep", false}} {
		m := testbox.Bind(dir+"/src", dir+"/ws/"+c.target)
		m.ReadOnly = true
		box, err := eng.Start(context.Background(),
			engine.Spec{FS: engine.FS{Workspace: dir + "/ws", AllowWrite: open, Mounts: []engine.Mount{m}}})
		if (err == nil) != c.works {
			t.Errorf("%s: %v", c.target, err)
		}
		if err == nil {
			testbox.Run(t, box, "touch", dir+"/ws/"+c.target+"/x")
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if now := snapshot(t, dir); now != before {
		t.Errorf("the host has\n%s\nand had\n%s", now, before)
	}
}

// snapshot lists a tree with everything that a mount or a write would change.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The working directory of a command is looked up inside, links included (CVE-2026-55686, CVE-2025-59532).
func TestWorkingDirectoryIsInside(t *testing.T) {
	dir := testenv.Dir(t)
	for _, d := range []string{dir + "/ws", dir + "/ws/sub", dir + "/outside"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir+"/outside", dir+"/ws/link"); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir+"/ws", testbox.Nobody, testbox.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	box := testbox.Sandbox(t, engine.Spec{Keep: true, FS: engine.FS{Workspace: dir + "/ws"}})
	for _, c := range []struct{ dir, want string }{
		{"", dir + "/ws"}, {"sub", dir + "/ws/sub"}, {"../../../../../..", "/"}, {"/..", "/"}, {"/proc/1/root", "/"},
		{dir + "/outside", ""}, {"link", ""}, {"/proc/self/fd/0", ""}, {"/proc/self/fd/3", ""}, {"/proc/self/fd/4", ""},
	} {
		cmd := box.Command("sh", "-c", `pwd -P; ls -d "../../../../../../../..$0" 2>/dev/null`, dir+"/outside")
		cmd.Dir = c.dir
		res, err := cmd.Run()
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%q: started in %s", c.dir, res.Stdout)
		case c.want != "" && (err != nil || strings.TrimSpace(string(res.Stdout)) != c.want):
			t.Errorf("%q: %+v, %v; want %s", c.dir, res, err, c.want)
		}
	}
}

// Fields that are too long for the kernel's encoding are refused, not truncated (CVE-2021-43784).
func TestLongFieldsAreRefused(t *testing.T) {
	eng := testbox.Open(t)
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, n := range []int{65, 256, 1 << 16, 1<<16 + 5} {
		for name, s := range map[string]engine.Spec{
			"hostname": {Hostname: long(n)},
			"name":     {Name: long(n)},
			"target":   {FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountTmpfs, Target: "/tmp/" + long(n+191)}}}},
			"source":   {FS: engine.FS{Mounts: []engine.Mount{testbox.Bind("/usr/"+long(n+191), "/m")}}},
			"root":     {FS: engine.FS{Root: "/usr/" + long(n+191)}},
		} {
			box, err := eng.Start(context.Background(), s)
			if err == nil {
				t.Errorf("%s of %d bytes: started", name, n)
				_ = box.Close()
			}
		}
	}
	box := testbox.Start(t, eng, engine.Spec{})
	cmd := box.Command("true")
	cmd.ExtraEnv = []string{"A=" + long(1<<20)} // more than the kernel takes for one
	if _, err := cmd.Run(); !errors.Is(err, unix.E2BIG) {
		t.Errorf("environment: got %v, want E2BIG", err)
	}
	if res := testbox.Run(t, box, "true"); res.Outcome != engine.OutcomeOK {
		t.Errorf("afterwards: %s", res.Outcome)
	}
}
