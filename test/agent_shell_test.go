//go:build linux

package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// commandShell has a workspace of the host's, which is returned.
func commandShell(t *testing.T, spec engine.Spec) (*agent.Shell, string) {
	t.Helper()
	dir := place(t)
	spec.FS.Workspace = dir
	return shellOf(t, open(t), spec), dir
}

func shellOf(t *testing.T, eng *engine.Engine, spec engine.Spec) *agent.Shell {
	t.Helper()
	sh := agent.NewShell(eng, onRung(spec), agent.Options{Output: 4096})
	t.Cleanup(func() {
		if err := sh.Close(); err != nil {
			t.Error(err)
		}
	})
	return sh
}

// do runs a command that has time enough.
func do(t *testing.T, sh *agent.Shell, command string) string {
	t.Helper()
	return text(sh.Run(within(t, 2*time.Minute), command, time.Minute))
}

// text is what a model is shown.
func text(reply agent.Reply, err error) string { return reply.Text(err) }

// appears waits for a file that a guest makes.
func appears(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// killFirst kills the children of this process that are the first of their pid
// namespace, and returns when they are dead.
func killFirst(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, name := range files {
		b, _ := os.ReadFile(name) // it may be gone
		if s := string(b); regexp.MustCompile(fmt.Sprintf(`(?m)^PPid:\t%d$`, os.Getpid())).MatchString(s) && regexp.MustCompile(`(?m)^NSpid:\t.*\t1$`).MatchString(s) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err != nil {
				t.Fatal(err)
			}
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
				t.Fatal(err)
			}
			dead := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			for n, err := 0, error(nil); n == 0; {
				if n, err = unix.Poll(dead, 20_000); err != nil && err != unix.EINTR || err == nil && n == 0 {
					t.Fatalf("it does not die: %v", err)
				}
			}
			_ = unix.Close(fd)
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("no sandbox found")
	}
}

func TestAgentCommandShell(t *testing.T) {
	t.Run("O02 the workspace is where commands start, and stays", func(t *testing.T) {
		sh, dir := commandShell(t, engine.Spec{})
		same(t, do(t, sh, "echo one; echo two >&2; echo three; echo x >file"), "exit 0\none\ntwo\nthree")
		same(t, do(t, sh, "pwd; cat file"), "exit 0\n"+dir+"\nx")
		same(t, do(t, sh, "exit 7"), "exit 7")
		same(t, do(t, sh, "kill -TERM $$"), "exit 143")
		same(t, do(t, sh, "cat"), "exit 0")
		same(t, do(t, sh, `printf 'a\377'`), "exit 0\na\uFFFD")
		same(t, do(t, sh, "printf '(no output)'"), "exit 0\n(no output)")
	})
	t.Run("O03 O42 a timeout removes the sandbox, and the next command recovers", func(t *testing.T) {
		sh, _ := commandShell(t, engine.Spec{})
		mark := marker(800)
		same(t, do(t, sh, "echo here >kept; echo there >$TMPDIR/lost"), "exit 0")
		same(t, text(sh.Run(t.Context(), "echo begun; sleep "+mark+" & setsid sleep "+mark+"; sleep "+mark, 2*time.Second)), "timed out after 2s (sandbox removed)\nbegun")
		same(t, len(alive(t, mark)), 0)
		same(t, do(t, sh, "cat kept; [ -e $TMPDIR/lost ] || echo gone"), "exit 0\nhere\ngone")
	})
	t.Run("O04 what cannot start is told, and runs nowhere", func(t *testing.T) {
		dir := place(t)
		for name, spec := range map[string]engine.Spec{
			"no such root":      {FS: engine.FS{Root: dir + "/none", Workspace: dir}},
			"no such workspace": {FS: engine.FS{Workspace: dir + "/none"}},
			"an invalid limit":  {Limits: engine.Limits{Pids: -1}},
		} {
			got := do(t, shellOf(t, open(t), spec), "touch "+dir+"/executed")
			if !strings.HasPrefix(got, "error: sandbox unavailable (") || !strings.HasSuffix(got, "); no host shell fallback") {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := do(t, shellOf(t, open(t), engine.Spec{FS: engine.FS{Workspace: dir}}), "[ -e executed ]"); got != "exit 1" {
			t.Errorf("executed: %s", got)
		}
	})
	t.Run("O04 a file tree without sh", func(t *testing.T) {
		sh := shellOf(t, open(t), engine.Spec{FS: engine.FS{Root: bareRoot(t, "cat")}})
		got := do(t, sh, "true")
		if !strings.HasPrefix(got, "error: sandbox unavailable (") || !strings.Contains(got, `"sh": not found`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("O01 O38 O39 O40 what it is", func(t *testing.T) {
		if loose {
			t.Skip("nothing keeps it from writing to the host")
		}
		library := place(t)
		if err := os.WriteFile(library+"/library.py", []byte("answer = 42\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		spec := engine.Spec{Env: []string{"PYTHONPATH=/ctx/library", "PYTHONDONTWRITEBYTECODE=1"}}
		if !bare {
			spec.FS.Mounts = []engine.Mount{{Type: engine.MountBind, Source: library, Target: "/ctx/library", ReadOnly: true}}
		}
		sh, dir := commandShell(t, spec)
		same(t, do(t, sh, "touch made"), "exit 0")
		same(t, ownerOf(t, dir+"/made"), ownerOf(t, dir))
		if got := do(t, sh, "grep -e NoNewPrivs -e CapEff /proc/self/status"); got != "exit 0\nCapEff:\t0000000000000000\nNoNewPrivs:\t1" {
			t.Errorf("got %s", got)
		}
		if got := do(t, sh, "getent hosts example.com"); strings.HasPrefix(got, "exit 0") {
			t.Errorf("a name was resolved: %s", got)
		}
		for _, p := range []string{"/usr/new", "/etc/new", "/new", "/root/new", "/ctx/library/new"} {
			if got := do(t, sh, "echo x >"+p); strings.HasPrefix(got, "exit 0") {
				t.Errorf("%s was written", p)
			}
		}
		other := place(t)
		if err := os.WriteFile(filepath.Join(other, "credentials"), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := do(t, sh, "cat "+other+"/credentials"); strings.Contains(got, "secret") {
			t.Errorf("a directory of the host: %s", got)
		}
		t.Run("O41 a library in a read-only directory", func(t *testing.T) {
			testenv.Need(t, testenv.Program("python3"))
			if bare {
				t.Skip("a mount takes namespaces")
			}
			same(t, do(t, sh, "python3 -c 'import library; print(library.answer)'"), "exit 0\n42")
		})
	})
	t.Run("X17 a sandbox that is killed from outside", func(t *testing.T) {
		sh, dir := commandShell(t, engine.Spec{})
		mark := marker(801)
		answer := make(chan string)
		go func() {
			answer <- text(sh.Run(context.Background(), "echo begun; touch started; sleep "+mark+"; echo over", time.Minute))
		}()
		appears(t, dir+"/started")
		if err := sh.Interrupt(); err != nil {
			t.Fatal(err)
		}
		same(t, <-answer, "interrupted (sandbox removed)\nbegun")
		gone(t, mark)
		same(t, do(t, sh, "echo again"), "exit 0\nagain")
		// Between two commands, and twice.
		for range 2 {
			if err := sh.Interrupt(); err != nil {
				t.Fatal(err)
			}
		}
		same(t, do(t, sh, "echo again"), "exit 0\nagain")
	})
	t.Run("X17 pid 1 of the sandbox is killed", func(t *testing.T) {
		if bare {
			t.Skip("there is no pid 1")
		}
		sh, dir := commandShell(t, engine.Spec{})
		same(t, do(t, sh, "echo x >/tmp/lost"), "exit 0")
		killFirst(t)
		same(t, do(t, sh, "[ -e /tmp/lost ] || echo a new one"), "exit 0\na new one")
		mark := marker(804)
		answer := make(chan string)
		go func() {
			answer <- text(sh.Run(context.Background(), "echo begun; touch started; sleep "+mark, time.Minute))
		}()
		appears(t, dir+"/started")
		killFirst(t)
		same(t, <-answer, "error: sandbox lost (it ended while the command ran); no host shell fallback\nbegun")
		same(t, do(t, sh, "echo again"), "exit 0\nagain")
	})
	t.Run("X17 a context that ends", func(t *testing.T) {
		sh, dir := commandShell(t, engine.Spec{})
		mark := marker(802)
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan string)
		go func() { answer <- text(sh.Run(ctx, "echo begun; touch started; sleep "+mark, time.Minute)) }()
		appears(t, dir+"/started")
		cancel()
		same(t, <-answer, "interrupted (sandbox removed)\nbegun")
		same(t, do(t, sh, "echo again"), "exit 0\nagain")
	})
	t.Run("O06 O43 close", func(t *testing.T) {
		sh, _ := commandShell(t, engine.Spec{})
		mark := marker(803)
		same(t, do(t, sh, "sleep "+mark+" >/dev/null 2>&1 &"), "exit 0")
		runs(t, mark)
		for range 2 {
			if err := sh.Close(); err != nil {
				t.Fatal(err)
			}
		}
		same(t, len(alive(t, mark)), 0)
		same(t, do(t, sh, "true"), "error: sandbox unavailable (shell is closed); no host shell fallback")
	})
	t.Run("an engine that is closed", func(t *testing.T) {
		eng := open(t)
		sh := shellOf(t, eng, engine.Spec{})
		same(t, do(t, sh, "echo x"), "exit 0\nx")
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
		got := do(t, sh, "echo x")
		if !strings.HasPrefix(got, "error: sandbox unavailable (") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("X07 a timeout that is none", func(t *testing.T) {
		sh, _ := commandShell(t, engine.Spec{})
		same(t, text(sh.Run(t.Context(), "touch executed", 0)), "error: invalid timeout 0s: it must be positive")
		same(t, text(sh.Run(t.Context(), "touch executed", -time.Second)), "error: invalid timeout -1s: it must be positive")
		same(t, text(sh.Run(t.Context(), "", time.Minute)), "error: invalid command: it is empty")
		same(t, do(t, sh, "[ -e executed ]"), "exit 1")
	})
	t.Run("output is bounded", func(t *testing.T) {
		sh, _ := commandShell(t, engine.Spec{})
		got := do(t, sh, "seq 1 300000; echo last")
		if len(got) > 4200 || !strings.HasPrefix(got, "exit 0\n1\n2\n") || !strings.Contains(got, "...[truncated]\n") || !strings.HasSuffix(got, "\nlast") {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	})
}

// A timeout of one command does not end another that waits for its turn.
func TestAgentCommandShellOrdersCommands(t *testing.T) {
	sh, _ := commandShell(t, engine.Spec{})
	var group sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		group.Go(func() {
			if i%4 == 0 {
				answers[i] = text(sh.Run(context.Background(), "sleep 60", time.Second/2))
				return
			}
			answers[i] = text(sh.Run(context.Background(), fmt.Sprintf("mkdir alone && rmdir alone && echo %d", i), time.Minute))
		})
	}
	group.Wait()
	for i, got := range answers {
		want := fmt.Sprintf("exit 0\n%d", i)
		if i%4 == 0 {
			want = "timed out after 0.5s (sandbox removed)"
		}
		same(t, got, want)
	}
}
