//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// hostToBeKilled starts sandboxes with commands that leave something behind, prints their directories, and waits to be
// killed.
func hostToBeKilled() {
	h, err := macHost()
	if err != nil {
		panic(err)
	}
	eng, err := engine.Open(engine.Options{Host: &h})
	if err != nil {
		panic(err)
	}
	mark := os.Args[1]
	for range 2 {
		box, err := eng.Start(context.Background(), engine.Spec{Keep: true})
		if err != nil {
			panic(err)
		}
		for range 2 {
			cmd := box.Command("sh", "-c", "mkdir -p closed/in; chmod 000 closed; sleep "+mark+" & exec sleep "+mark)
			cmd.Stdout = io.Discard
			if err := cmd.Start(); err != nil {
				panic(err)
			}
		}
		fmt.Println(filepath.Dir(box.Plan().Dir))
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

func TestHostIsKilled(t *testing.T) {
	private(t)
	mark := testbox.Marker(26)
	host, stdout := testbox.StartHelper(t, "host", mark)
	var dirs []string
	for lines := bufio.NewScanner(stdout); lines.Scan() && lines.Text() != "ready"; {
		dirs = append(dirs, lines.Text())
	}
	// The host itself has the marker in its command line, so it does not count.
	testbox.Until(t, "its commands run", func() bool { return len(testbox.Alive(t, "sleep "+mark)) >= 8 })
	for _, d := range dirs {
		if !exists(d) {
			t.Errorf("%s is not there", d)
		}
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	if len(dirs) != 2 {
		t.Fatalf("directories %q, want 2", dirs)
	}
	testbox.Until(t, "all processes are gone", func() bool { return len(testbox.Alive(t, mark)) == 0 })
	testbox.Until(t, "all directories are gone", func() bool { return !exists(dirs[0]) && !exists(dirs[1]) })
}

func TestKeepWithSeveralCommands(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	const n = 6
	results := make(chan string, n)
	for i := range n {
		cmd := box.CommandContext(testbox.Within(t, limit), "sh", "-c",
			fmt.Sprintf(": >up%d; until [ -e up%d ]; do sleep 0.02; done; echo %d; exit %d", i, (i+1)%n, i, i))
		go func() {
			res, err := cmd.Run()
			switch {
			case err != nil:
				results <- err.Error()
			case string(res.Stdout) != fmt.Sprintf("%d\n", i) || res.ExitCode != i:
				results <- fmt.Sprintf("%d: %d, %q", i, res.ExitCode, res.Stdout)
			default:
				results <- ""
			}
		}()
	}
	for range n { // each waits for another, so they have to run at once
		if wrong := <-results; wrong != "" {
			t.Error(wrong)
		}
	}
	if got := sh(t, box, "ls | wc -l | tr -d ' '"); got != "6" {
		t.Errorf("%s files, want 6", got)
	}
}

func TestCancelOfOneLeavesTheOther(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	ctx, cancel := context.WithCancel(t.Context())
	mark := testbox.Marker(31)
	one := box.CommandContext(ctx, "sh", "-c", "sleep "+mark+" & : >one; wait")
	other := box.CommandContext(testbox.Within(t, limit), "sh", "-c",
		": >other; until [ -e end ]; do sleep 0.02; done; echo done")
	for _, cmd := range []*engine.Cmd{one, other} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, box, "until [ -e one ] && [ -e other ]; do sleep 0.02; done")
	testbox.Runs(t, "sleep "+mark)
	cancel()
	if res, err := one.Wait(); err != nil || res.Outcome != engine.OutcomeCanceled {
		t.Errorf("the one: %+v, %v", res, err)
	}
	testbox.Until(t, "what it left is gone", func() bool { return len(testbox.Alive(t, mark)) == 0 })
	sh(t, box, ": >end")
	if res, err := other.Wait(); err != nil || res.Outcome != engine.OutcomeOK || string(res.Stdout) != "done\n" {
		t.Errorf("the other: %+v, %v", res, err)
	}
}

func TestCloseWhileCommandsRun(t *testing.T) {
	temp := private(t)
	eng := open(t, nil)
	box := start(t, eng, engine.Spec{Keep: true})
	mark := testbox.Marker(32)
	var cmds []*engine.Cmd
	for range 3 {
		cmd := box.Command("sh", "-c", "trap '' TERM HUP INT; sleep "+mark+" & sleep "+mark+"; sleep "+mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	testbox.Until(t, "all of it runs", func() bool { return len(testbox.Alive(t, "sleep "+mark)) >= 6 })
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if left := testbox.Alive(t, mark); len(left) > 0 { // Close has waited
		t.Errorf("alive after Close: %q", left)
	}
	empty(t, temp)
	for _, cmd := range cmds {
		if res, err := cmd.Wait(); err != nil || res.Outcome != engine.OutcomeLost {
			t.Errorf("%+v, %v; want lost", res, err)
		}
	}
	if _, err := box.Command("true").Run(); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a command afterwards: %v", err)
	}
	if err := box.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestTooManyProcesses(t *testing.T) {
	mark := testbox.Marker(33)
	box := sandbox(t, engine.Spec{Limits: engine.Limits{Pids: 10}})
	res := testbox.Run(t, box, "sh", "-c", "i=0; while [ $i -lt 30 ]; do sleep "+mark+" & i=$((i+1)); done; wait")
	if res.Outcome != engine.OutcomePids {
		t.Errorf("%s, stderr %s; want pids", res.Outcome, res.Stderr)
	}
	testbox.Until(t, "all are gone", func() bool { return len(testbox.Alive(t, mark)) == 0 })
}

func TestOutputIsBounded(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Output: 1000, Discard: 4 * engine.MiB}})
	res := testbox.Run(t, box, "sh", "-c",
		"dd if=/dev/zero bs=65536 count=4 2>/dev/null; dd if=/dev/zero bs=500 count=1 2>/dev/null | cat >&2")
	if res.Outcome != engine.OutcomeOK || len(res.Stdout) != 1000 || !res.Streams.TruncatedStdout || len(res.Stderr) != 500 ||
		res.Streams.TruncatedStderr {
		t.Errorf("%s, %d bytes (%v), %d (%v); want 1000 truncated, 500 not", res.Outcome, len(res.Stdout),
			res.Streams.TruncatedStdout, len(res.Stderr), res.Streams.TruncatedStderr)
	}
	if res := testbox.Run(t, box, "cat", "/dev/zero"); res.Outcome != engine.OutcomeOutput || len(res.Stdout) != 1000 {
		t.Errorf("endless: %s, %d bytes; want output, 1000", res.Outcome, len(res.Stdout))
	}
}

func TestStdin(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	if got := output(t, box, "cat"); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	for name, size := range map[string]int{"none": 0, "some": 10, "more than a pipe holds": 300_000} {
		text := strings.Repeat("x", size)
		cmd := box.CommandContext(testbox.Within(t, limit), "cat")
		cmd.Stdin = strings.NewReader(text)
		if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeOK || string(res.Stdout) != text {
			t.Errorf("%s: %v", name, err)
		}
	}
	cmd := box.CommandContext(testbox.Within(t, limit), "true") // who does not read it
	cmd.Stdin = strings.NewReader(strings.Repeat("x", 300_000))
	if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeOK {
		t.Errorf("not read: %+v, %v", res, err)
	}
}

func TestTerminal(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	run := func(stdin io.Reader, script string) string {
		t.Helper()
		cmd := box.CommandContext(testbox.Within(t, limit), "bash", "-c", script)
		cmd.TTY, cmd.Stdin = &engine.WindowSize{Rows: 33, Cols: 77}, stdin
		res, err := cmd.Run()
		if err != nil || res.Outcome != engine.OutcomeOK {
			t.Fatalf("%s: %+v, %v", script, res, err)
		}
		return strings.Join(strings.Fields(string(res.Stdout)), " ")
	}
	if got, want := run(nil, "for i in 0 1 2; do [ -t $i ] || echo $i is none; done; tty; stty size; : </dev/tty && "+
		"echo own; echo $TERM"), "33 77 own xterm-256color"; !strings.HasPrefix(got, "/dev/") ||
		!strings.HasSuffix(got, want) {
		t.Errorf("got %q, want a terminal and %q", got, want)
	}
	if got := run(strings.NewReader("typed\n"), "stty -echo; read -r x; echo got $x"); !strings.HasSuffix(got,
		"got typed") {
		t.Errorf("reading it: %q", got)
	}

	var out strings.Builder
	cmd := box.CommandContext(testbox.Within(t, limit), "bash", "-c",
		"trap 'stty size; exit' WINCH; : >up; while :; do sleep 0.02; done")
	cmd.TTY, cmd.Stdout = &engine.WindowSize{Rows: 1, Cols: 2}, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sh(t, box, "until [ -e up ]; do sleep 0.02; done")
	if err := cmd.Resize(engine.WindowSize{Rows: 50, Cols: 60}); err != nil {
		t.Error(err)
	}
	if res, err := cmd.Wait(); err != nil || strings.TrimSpace(out.String()) != "50 60" {
		t.Errorf("resized: %q, %+v, %v", out.String(), res, err)
	}
}

func TestClosedDirectoriesAreRemoved(t *testing.T) {
	temp := private(t)
	box := start(t, open(t, nil), engine.Spec{})
	sh(t, box, `for d in . "$TMPDIR"; do mkdir -p "$d/a/b/c" && echo x >"$d/a/b/f" && chmod 000 "$d/a/b/c" "$d/a/b/f" && chmod 000 "$d/a/b" && chmod 000 "$d/a"; done; ln -s / link; chmod 000 .`)
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	empty(t, temp)
}

func TestSandboxesShareNothing(t *testing.T) {
	eng := open(t, nil)
	one, two := start(t, eng, engine.Spec{}), start(t, eng, engine.Spec{})
	sh(t, one, `echo x >f; echo x >"$TMPDIR/f"; echo x >~/g`)
	if got := sh(t, two, `ls . "$TMPDIR" ~ | grep -c '^[fg]$' || true`); got != "0" {
		t.Errorf("the other sees %s files", got)
	}
	a, b := sh(t, one, `pwd -P; echo "$TMPDIR"; echo ~`), sh(t, two, `pwd -P; echo "$TMPDIR"; echo ~`)
	for i, line := range strings.Split(a, "\n") {
		if line == strings.Split(b, "\n")[i] {
			t.Errorf("both have %s", line)
		}
	}
	testSeparate(t, two, strings.Split(a, "\n")[0]+"/f")
}

// testSeparate checks that one sandbox cannot reach a file of another.
func testSeparate(t *testing.T, box *engine.Sandbox, file string) {
	t.Run("by name", func(t *testing.T) {
		needSeatbelt(t)
		for _, script := range []string{"cat " + file, "echo y >>" + file, "rm " + file} {
			if res := testbox.Run(t, box, "sh", "-c", script); res.Outcome != engine.OutcomeExit {
				t.Errorf("%s: %s, %s", script, res.Outcome, res.Stdout)
			}
		}
	})
}

// The plan of a started sandbox has the real paths, without stand-ins for them.
func TestPlanHasRealPaths(t *testing.T) {
	temp := private(t)
	box := start(t, open(t, nil), engine.Spec{})
	p := box.Plan()
	if p.Dir != sh(t, box, "pwd -P") || !strings.HasPrefix(p.Dir, temp+"/") {
		t.Errorf("it starts in %q", p.Dir)
	}
	for _, text := range []string{p.String(), p.Calls(), strings.Join(p.Env, "\n"), p.Dir} {
		if strings.Contains(text, "(private)") || !strings.Contains(text, temp) {
			t.Errorf("a placeholder, or no path, in\n%s", text)
		}
	}
	if info, err := os.Stat(filepath.Dir(p.Dir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v, %v; want one that others cannot enter", info, err)
	}
}

func TestSignals(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1} {
		cmd := box.CommandContext(testbox.Within(t, limit), "sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Signal(sig); err != nil {
			t.Error(err)
		}
		if res, err := cmd.Wait(); err != nil || res.Outcome != engine.OutcomeSignal || res.Signal != sig ||
			res.ExitCode != 128+int(sig) {
			t.Errorf("%s: %+v, %v", sig, res, err)
		}
		if err := cmd.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s afterwards: %v", sig, err)
		}
	}
}

// A stopped watcher is not waited for.
func TestStoppedWatcher(t *testing.T) {
	needs(t, "pkill")
	box := start(t, open(t, nil), engine.Spec{Keep: true})
	testbox.Run(t, box, "true")
	private := filepath.Dir(box.Plan().Dir)
	if out, err := exec.Command("pkill", "-STOP", "-f", "tegmen-watch "+private).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testbox.Run(t, box, "true")
	closed := make(chan error, 1)
	go func() { closed <- box.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(limit):
		t.Fatal("Close waits for it")
	}
}

// A link in place of a command's texts leads nowhere, whether or not a guest can put one there.
func TestTextsFollowNoLink(t *testing.T) {
	target := dir(t)
	box := start(t, open(t, nil), engine.Spec{Keep: true})
	res := testbox.Run(t, box, "sh", "-c", `cd "$TMPDIR/.." && for n in 1 2 3; do ln -s "$0" run-$n; done`, target)
	t.Logf("links: %s, %s", res.Outcome, res.Stderr)
	_, err := box.RunCode(testbox.Within(t, limit), engine.Code{Language: "sh", Source: "echo ran"}, testbox.Adders())
	if standIn && !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want that it exists", err)
	}
	if names, err := os.ReadDir(target); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
	if res := testbox.Run(t, box, "echo", "alive"); res.Outcome != engine.OutcomeOK {
		t.Errorf("the sandbox: %s", res.Outcome)
	}
}

// A command that stops the launchers of others holds them up until their deadline, and no longer.
func TestStoppedLauncher(t *testing.T) {
	needs(t, "pkill")
	box := sandbox(t, engine.Spec{Keep: true})
	mark := testbox.Marker(77)
	sh(t, box, "echo "+mark+" >mark") // not among arguments, where pkill would find the shell
	stopper := box.CommandContext(testbox.Within(t, limit), "sh", "-c",
		`read -r m <mark; while :; do pkill -STOP -f "$m"; done`)
	if err := stopper.Start(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		cmd := box.CommandContext(testbox.Within(t, limit), "echo", mark)
		cmd.Wall = time.Second
		if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeOK && res.Outcome != engine.OutcomeTimeout {
			t.Errorf("%+v, %v", res, err)
		}
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if res, err := stopper.Wait(); err != nil {
		t.Errorf("%+v, %v", res, err)
	}
}
