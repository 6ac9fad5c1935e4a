//go:build linux

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

func TestNothingSurvivesClose(t *testing.T) { testbox.EachLevel(t, testNothingSurvivesClose) }

func testNothingSurvivesClose(t *testing.T, l testbox.Level) {
	eng := l.Open(t)
	n := 0
	for name, script := range testbox.LeaveBehind {
		n++
		mark := testbox.Marker(n)
		t.Run(name, func(t *testing.T) {
			l.SkipUntracked(t, name)
			box := l.Start(t, eng, engine.Spec{})
			begin := time.Now()
			res := testbox.Run(t, box, "sh", "-c", fmt.Sprintf(script, mark))
			if got := strings.TrimSpace(string(res.Stdout)); got != "ready" || res.Outcome != engine.OutcomeOK {
				t.Fatalf("%s, stdout %q, stderr %s", res.Outcome, got, res.Stderr)
			}
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("Wait took %v: it waited for what was left behind", d)
			}
			testbox.Runs(t, mark)
			if err := box.Close(); err != nil {
				t.Fatal(err)
			}
			// Close has waited: it is gone now, not soon.
			if left := testbox.Alive(t, mark); len(left) > 0 {
				t.Errorf("alive after Close: %v", left)
			}
		})
	}
}

func TestOutputHeldOpenIsReported(t *testing.T) {
	testbox.EachLevel(t, testOutputHeldOpenIsReported, testbox.Confined...)
}

func testOutputHeldOpenIsReported(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{})
	if res := testbox.Run(t, box, "sh", "-c", "sleep 1000 & echo hi"); !res.Streams.Detached || string(res.Stdout) != "hi\n" {
		t.Errorf("detached %v, stdout %q", res.Streams.Detached, res.Stdout)
	}
	// The shell ends only when the process that it leaves behind has closed the output.
	if res := testbox.Run(t, box, "sh", "-c",
		"{ >$TMPDIR/apart; exec sleep 1000; } >/dev/null 2>&1 & until [ -e $TMPDIR/apart ]; do :; done; "+
			"echo hi"); res.Streams.Detached {
		t.Error("detached, though nothing holds the output")
	}
	// However short WaitDelay is, output that was written before the end is there.
	for i := range 50 {
		cmd := box.Command("sh", "-c", "sleep 1000 & echo hi")
		cmd.WaitDelay = 1
		res, err := cmd.Run()
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		if string(res.Stdout) != "hi\n" {
			t.Fatalf("run %d: %q", i, res.Stdout)
		}
	}
}

func TestTimeoutEndsTheSandbox(t *testing.T) { testbox.EachLevel(t, testTimeoutEndsTheSandbox) }

func testTimeoutEndsTheSandbox(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{})
	mark := testbox.Marker(100)
	cmd := box.Command("sh", "-c", "echo partial; sleep "+mark)
	cmd.Wall = 1500 * time.Millisecond // from Start on: an emulated machine takes half a second to start it
	res, err := cmd.Run()
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcome != engine.OutcomeTimeout || string(res.Stdout) != "partial\n" {
		t.Errorf("%s, stdout %q; want timeout and what was written before", res.Outcome, res.Stdout)
	}
	<-box.Done()
	testbox.Gone(t, mark)
	if _, err := box.Command("true").Run(); err == nil {
		t.Error("a command ran in a sandbox that has ended")
	}
}

// With Keep, a timeout or cancel kills the command and all its descendants, and nothing else.
func TestKeepKillsOnlyTheTree(t *testing.T) { testbox.EachLevel(t, testKeepKillsOnlyTheTree) }

func testKeepKillsOnlyTheTree(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{Keep: true})
	other := box.Command("cat")
	stdin, stdinW := io.Pipe()
	other.Stdin = stdin
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	n := 200
	for name, script := range testbox.LeaveBehind {
		n++
		mark := testbox.Marker(n)
		t.Run(name, func(t *testing.T) {
			l.SkipUntracked(t, name)
			ctx, cancel := context.WithCancel(context.Background())
			cmd := box.CommandContext(ctx, "sh", "-c", fmt.Sprintf(script, mark)+"; sleep "+mark)
			lines, w := io.Pipe()
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(lines, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, lines) }() // until closed below
			cancel()
			res, err := cmd.Wait()
			_ = w.Close()
			if err != nil || res.Outcome != engine.OutcomeCanceled {
				t.Fatalf("%+v, %v", res, err)
			}
			testbox.Gone(t, mark)
		})
	}
	if err := stdinW.Close(); err != nil {
		t.Fatal(err)
	}
	if res, err := other.Wait(); err != nil || res.Outcome != engine.OutcomeOK {
		t.Errorf("the other command: %+v, %v", res, err)
	}
	if got := testbox.Output(t, box, "echo alive"); got != "alive" {
		t.Errorf("the sandbox: %q", got)
	}
}

// Sandboxes of the same user that end meanwhile do not kill the processes of one that goes on, although for a moment
// nobody can tell whose they are.
func TestKeepBesideSandboxesThatEnd(t *testing.T) {
	eng := testbox.Open(t)
	ctx, cancel := context.WithCancel(context.Background())
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for ctx.Err() == nil {
				box, err := eng.Start(context.Background(), engine.Spec{})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := box.Command("sh", "-c", "sleep 1000 & sleep 0.01").Run(); err != nil {
					t.Error(err)
				}
				if err := box.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		box := testbox.Start(t, eng, engine.Spec{Keep: true})
		cmd := box.Command("sleep", "1000")
		cmd.Wall = 20 * time.Millisecond
		if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeTimeout {
			t.Errorf("%+v, %v", res, err)
		}
		if res, err := box.Command("true").Run(); err != nil || res.Outcome != engine.OutcomeOK {
			t.Errorf("afterwards: %+v, %v", res, err)
		}
	}
	cancel()
	others.Wait()
}

// A command that is started while its sandbox ends runs there or not at all: never in another sandbox that reuses one
// of its numbers (a descriptor, a pid).
func TestStartsWhileSandboxesEnd(t *testing.T) { testbox.EachLevel(t, testStartsWhileSandboxesEnd) }

func testStartsWhileSandboxesEnd(t *testing.T, l testbox.Level) {
	eng := l.Open(t)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 25 {
				name := fmt.Sprintf("box-%d-%d", worker, i)
				if !l.HasNamespaces() {
					name = "" // which takes namespaces
				}
				box, err := eng.Start(context.Background(), l.Accept(engine.Spec{Hostname: name}))
				if err != nil {
					t.Error(err)
					return
				}
				ended := make(chan error, 1)
				for range 3 {
					wg.Go(func() {
						res, err := box.Command("cat", "/etc/hosts").Run()
						if err == nil && res.Outcome == engine.OutcomeOK && !bytes.Contains(res.Stdout, []byte(name)) {
							t.Errorf("%s: %s", name, res.Stdout)
						}
					})
				}
				go func() { ended <- box.Close() }()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestCanceledBeforeStart(t *testing.T) { testbox.EachLevel(t, testCanceledBeforeStart) }

func testCanceledBeforeStart(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := box.CommandContext(ctx, "true").Run(); !strings.Contains(fmt.Sprint(err), "canceled") {
		t.Errorf("got %v", err)
	}
}

// hostToBeKilled starts sandboxes and commands in all phases of their lives until it is killed.
func hostToBeKilled() {
	l, mark := testbox.LevelNamed(os.Args[1]), os.Args[2]
	h, err := l.Probe()
	if err != nil {
		panic(err)
	}
	eng, err := engine.Open(engine.Options{Host: &h})
	if err != nil {
		panic(err)
	}
	spec := l.Accept(engine.Spec{Name: "killed-" + mark, Keep: true})
	for i := range 2 {
		go func() {
			for {
				box, err := eng.Start(context.Background(), spec)
				if err != nil {
					panic(err)
				}
				for range 3 {
					leave := "setsid"
					if !l.Confines() { // which could not see that here
						leave = "exec"
					}
					cmd := box.Command("sh", "-c", "("+leave+" sleep "+mark+" &); exec sleep "+mark)
					cmd.Stdout = io.Discard
					if err := cmd.Start(); err != nil {
						panic(err)
					}
				}
				if i == 0 {
					if err := box.Close(); err != nil {
						panic(err)
					}
				}
				fmt.Println("started")
			}
		}()
	}
	select {}
}

func TestNothingSurvivesTheHost(t *testing.T) { testbox.EachLevel(t, testNothingSurvivesTheHost) }

func testNothingSurvivesTheHost(t *testing.T, l testbox.Level) {
	for i := range 8 {
		mark := testbox.Marker(300 + i)
		host, out := testbox.StartHelper(t, "host", l.Name, mark)
		// It is killed after a different number of starts each time.
		if _, err := io.ReadFull(out, make([]byte, len("started\n")*(1+i))); err != nil {
			t.Fatal(err)
		}
		testbox.Runs(t, "sleep "+mark) // the host has the marker too
		if err := host.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = host.Wait() // killed
		testbox.Gone(t, mark)
	}
}

// A signal to the group reaches the child that a shell waits for; a signal to the command does not.
func TestSignalGroup(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	// The shell waits already when its child says "ready".
	cmd := box.CommandContext(testbox.Within(t, time.Minute), "sh", "-c",
		"sh -c 'echo ready; exec sleep 1000'; echo after")
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
	if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.SignalGroup(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	res, err := cmd.Wait()
	rest, _ := io.ReadAll(r)
	if err != nil || res.Outcome != engine.OutcomeSignal || res.Signal != syscall.SIGINT || len(rest) > 0 {
		t.Errorf("%v, %+v, and it went on with %q", err, res, rest)
	}
	if err := cmd.SignalGroup(syscall.SIGINT); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after its end: %v", err)
	}
}
