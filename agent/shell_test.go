//go:build linux

package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// commandShell returns a shell and its workspace, a directory of the host.
func commandShell(t *testing.T, l testbox.Level, spec engine.Spec) (*agent.Shell, string) {
	t.Helper()
	dir := testbox.Workspace(t)
	spec.FS.Workspace = dir
	return shellOf(t, l, l.Open(t), spec), dir
}

func shellOf(t *testing.T, l testbox.Level, eng *engine.Engine, spec engine.Spec) *agent.Shell {
	t.Helper()
	sh := agent.NewShell(eng, l.Accept(spec), agent.Options{Output: 4096})
	t.Cleanup(func() {
		if err := sh.Close(); err != nil {
			t.Error(err)
		}
	})
	return sh
}

// do runs a command with enough time.
func do(t *testing.T, sh *agent.Shell, command string) string {
	t.Helper()
	return text(sh.Run(testbox.Within(t, 2*time.Minute), command, time.Minute))
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

func TestShell(t *testing.T) { testbox.EachLevel(t, testShell, testbox.Confined...) }

func testShell(t *testing.T, l testbox.Level) {
	t.Run("OpenChia: the workspace is where commands start, and stays", func(t *testing.T) {
		sh, dir := commandShell(t, l, engine.Spec{})
		same(t, do(t, sh, "echo one; echo two >&2; echo three; echo x >file"), "exit 0\none\ntwo\nthree")
		same(t, do(t, sh, "pwd; cat file"), "exit 0\n"+dir+"\nx")
		same(t, do(t, sh, "exit 7"), "exit 7")
		same(t, do(t, sh, "kill -TERM $$"), "exit 143")
		same(t, do(t, sh, "cat"), "exit 0")
		same(t, do(t, sh, `printf 'a\377'`), "exit 0\na\uFFFD")
		same(t, do(t, sh, "printf '(no output)'"), "exit 0\n(no output)")
	})
	t.Run("OpenChia: a timeout removes the sandbox, and the next command recovers", func(t *testing.T) {
		sh, _ := commandShell(t, l, engine.Spec{})
		mark := testbox.Marker(800)
		same(t, do(t, sh, "echo here >kept; echo there >$TMPDIR/lost"), "exit 0")
		same(t, text(sh.Run(t.Context(), "echo begun; sleep "+mark+" & setsid sleep "+mark+"; sleep "+mark, 2*time.Second)),
			"timed out after 2s (sandbox removed)\nbegun")
		same(t, len(testbox.Alive(t, mark)), 0)
		same(t, do(t, sh, "cat kept; [ -e $TMPDIR/lost ] || echo gone"), "exit 0\nhere\ngone")
	})
	t.Run("OpenChia: what cannot start is told, and runs nowhere", func(t *testing.T) {
		dir := testbox.Workspace(t)
		for name, spec := range map[string]engine.Spec{
			"no such root":      {FS: engine.FS{Root: dir + "/none", Workspace: dir}},
			"no such workspace": {FS: engine.FS{Workspace: dir + "/none"}},
			"an invalid limit":  {Limits: engine.Limits{Pids: -1}},
		} {
			got := do(t, shellOf(t, l, l.Open(t), spec), "touch "+dir+"/executed")
			if !strings.HasPrefix(got, "error: sandbox unavailable (") || !strings.HasSuffix(got, "); no host shell fallback") {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := do(t, shellOf(t, l, l.Open(t), engine.Spec{FS: engine.FS{Workspace: dir}}),
			"[ -e executed ]"); got != "exit 1" {
			t.Errorf("executed: %s", got)
		}
	})
	t.Run("OpenChia: a file tree without sh", func(t *testing.T) {
		if !l.HasNamespaces() {
			t.Skip("a root takes namespaces")
		}
		sh := shellOf(t, l, l.Open(t), engine.Spec{FS: engine.FS{Root: busyboxRoot(t, "cat")}})
		got := do(t, sh, "true")
		if !strings.HasPrefix(got, "error: sandbox unavailable (") || !strings.Contains(got, `"sh": not found`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("OpenChia: what it is", func(t *testing.T) {
		library := testbox.Workspace(t)
		if err := os.WriteFile(library+"/library.py", []byte("answer = 42\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		spec := engine.Spec{Env: []string{"PYTHONPATH=/ctx/library", "PYTHONDONTWRITEBYTECODE=1"}}
		if l.HasNamespaces() {
			spec.FS.Mounts = []engine.Mount{{Type: engine.MountBind, Source: library, Target: "/ctx/library", ReadOnly: true}}
		}
		sh, dir := commandShell(t, l, spec)
		same(t, do(t, sh, "touch made"), "exit 0")
		same(t, testbox.Owner(t, dir+"/made"), testbox.Owner(t, dir))
		if got := do(t, sh, "grep -e NoNewPrivs -e CapEff /proc/self/status"); got != "exit 0\nCapEff:\t0000000000000000\n"+
			"NoNewPrivs:\t1" {
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
		other := testbox.Workspace(t)
		if err := os.WriteFile(filepath.Join(other, "credentials"), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := do(t, sh, "cat "+other+"/credentials"); strings.Contains(got, "secret") {
			t.Errorf("a directory of the host: %s", got)
		}
		t.Run("OpenChia: a library in a read-only directory", func(t *testing.T) {
			testenv.Need(t, testenv.Program("python3"))
			if !l.HasNamespaces() {
				t.Skip("a mount takes namespaces")
			}
			same(t, do(t, sh, "python3 -c 'import library; print(library.answer)'"), "exit 0\n42")
		})
	})
	t.Run("a sandbox that is killed from outside", func(t *testing.T) {
		sh, dir := commandShell(t, l, engine.Spec{})
		mark := testbox.Marker(801)
		answer := make(chan string)
		go func() {
			answer <- text(sh.Run(context.Background(), "echo begun; touch started; sleep "+mark+"; echo over", time.Minute))
		}()
		appears(t, dir+"/started")
		if err := sh.Interrupt(); err != nil {
			t.Fatal(err)
		}
		same(t, <-answer, "interrupted (sandbox removed)\nbegun")
		testbox.Gone(t, mark)
		same(t, do(t, sh, "echo again"), "exit 0\nagain")
		// Between two commands, and twice.
		for range 2 {
			if err := sh.Interrupt(); err != nil {
				t.Fatal(err)
			}
		}
		same(t, do(t, sh, "echo again"), "exit 0\nagain")
	})
	t.Run("pid 1 of the sandbox is killed", func(t *testing.T) {
		if !l.HasNamespaces() {
			t.Skip("there is no pid 1")
		}
		sh, dir := commandShell(t, l, engine.Spec{})
		same(t, do(t, sh, "echo x >/tmp/lost"), "exit 0")
		testbox.KillInit(t)
		same(t, do(t, sh, "[ -e /tmp/lost ] || echo a new one"), "exit 0\na new one")
		mark := testbox.Marker(804)
		answer := make(chan string)
		go func() {
			answer <- text(sh.Run(context.Background(), "echo begun; touch started; sleep "+mark, time.Minute))
		}()
		appears(t, dir+"/started")
		testbox.KillInit(t)
		same(t, <-answer, "error: sandbox lost (it ended while the command ran); no host shell fallback\nbegun")
		same(t, do(t, sh, "echo again"), "exit 0\nagain")
	})
	t.Run("a context that ends", func(t *testing.T) {
		sh, dir := commandShell(t, l, engine.Spec{})
		mark := testbox.Marker(802)
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan string)
		go func() { answer <- text(sh.Run(ctx, "echo begun; touch started; sleep "+mark, time.Minute)) }()
		appears(t, dir+"/started")
		cancel()
		same(t, <-answer, "interrupted (sandbox removed)\nbegun")
		same(t, do(t, sh, "echo again"), "exit 0\nagain")
	})
	t.Run("OpenChia: close", func(t *testing.T) {
		sh, _ := commandShell(t, l, engine.Spec{})
		mark := testbox.Marker(803)
		same(t, do(t, sh, "sleep "+mark+" >/dev/null 2>&1 &"), "exit 0")
		testbox.Runs(t, mark)
		for range 2 {
			if err := sh.Close(); err != nil {
				t.Fatal(err)
			}
		}
		same(t, len(testbox.Alive(t, mark)), 0)
		same(t, do(t, sh, "true"), "error: sandbox unavailable (shell is closed); no host shell fallback")
	})
	t.Run("an engine that is closed", func(t *testing.T) {
		eng := l.Open(t)
		sh := shellOf(t, l, eng, engine.Spec{})
		same(t, do(t, sh, "echo x"), "exit 0\nx")
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
		got := do(t, sh, "echo x")
		if !strings.HasPrefix(got, "error: sandbox unavailable (") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a timeout that is none", func(t *testing.T) {
		sh, _ := commandShell(t, l, engine.Spec{})
		same(t, text(sh.Run(t.Context(), "touch executed", 0)), "error: invalid timeout 0s: it must be positive")
		same(t, text(sh.Run(t.Context(), "touch executed", -time.Second)), "error: invalid timeout -1s: it must be positive")
		same(t, text(sh.Run(t.Context(), "", time.Minute)), "error: invalid command: it is empty")
		same(t, do(t, sh, "[ -e executed ]"), "exit 1")
	})
	t.Run("output is bounded", func(t *testing.T) {
		sh, _ := commandShell(t, l, engine.Spec{})
		got := do(t, sh, "seq 1 300000; echo last")
		if len(got) > 4200 || !strings.HasPrefix(got, "exit 0\n1\n2\n") || !strings.Contains(got, "...[truncated]\n") ||
			!strings.HasSuffix(got, "\nlast") {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	})
}

// A timeout of one command does not end another that waits for its turn.
func TestShellRunsCommandsInTurn(t *testing.T) {
	testbox.EachLevel(t, testShellRunsCommandsInTurn, testbox.Confined...)
}

func testShellRunsCommandsInTurn(t *testing.T, l testbox.Level) {
	sh, _ := commandShell(t, l, engine.Spec{})
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
