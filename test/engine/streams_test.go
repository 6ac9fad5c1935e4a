//go:build linux

package engine_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestOutputIsBoundedWhileItIsRead(t *testing.T) {
	testbox.EachLevel(t, testOutputIsBoundedWhileItIsRead, testbox.Confined...)
}

func testOutputIsBoundedWhileItIsRead(t *testing.T, l testbox.Level) {
	testenv.NoRace(t)
	box := l.Sandbox(t, engine.Spec{Limits: engine.Limits{Output: 1000}})
	before, _ := testbox.Resident(t)
	res, err := box.CommandContext(testbox.Within(t, 2*time.Minute), "head", "-c", "1G", "/dev/zero").Run()
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcome != engine.OutcomeOK || len(res.Stdout) != 1000 || !res.Streams.TruncatedStdout || res.Streams.TruncatedStderr {
		t.Errorf("%s, %d bytes, truncated %v %v", res.Outcome, len(res.Stdout), res.Streams.TruncatedStdout, res.Streams.TruncatedStderr)
	}
	if after, _ := testbox.Resident(t); after > before+16*engine.MiB {
		t.Errorf("the host grew by %s while 1 GiB was written", after-before)
	}
}

func TestTruncationKeepsCharactersWhole(t *testing.T) {
	testbox.EachLevel(t, testTruncationKeepsCharactersWhole, testbox.Confined...)
}

func testTruncationKeepsCharactersWhole(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{Limits: engine.Limits{Output: 10}})
	res := testbox.Run(t, box, "printf", "ééééééééé") // two bytes each
	if got, want := string(res.Stdout), "ééééé"; got != want || !res.Streams.TruncatedStdout {
		t.Errorf("got %q, truncated %v; want %q", got, res.Streams.TruncatedStdout, want)
	}
	res = testbox.Run(t, box, "printf", "x€€€€") // three bytes each: the limit is inside one
	if got, want := string(res.Stdout), "x€€€"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBytesPassUnchanged(t *testing.T) {
	testbox.EachLevel(t, testBytesPassUnchanged, testbox.Confined...)
}

func testBytesPassUnchanged(t *testing.T, l testbox.Level) {
	want := make([]byte, 256)
	for i := range want {
		want[i] = byte(i)
	}
	cmd := l.Sandbox(t, engine.Spec{}).Command("cat")
	cmd.Stdin = bytes.NewReader(want)
	res, err := cmd.Run()
	if err != nil || !bytes.Equal(res.Stdout, want) {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
}

func TestLargeStreamsBothWays(t *testing.T) { testbox.EachLevel(t, testLargeStreamsBothWays) }

func testLargeStreamsBothWays(t *testing.T, l testbox.Level) {
	const size = 100 << 20
	cmd := l.Sandbox(t, engine.Spec{}).CommandContext(testbox.Within(t, 2*time.Minute), "cat")
	in, out := sha256.New(), sha256.New()
	cmd.Stdin = io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), size), in)
	cmd.Stdout = out
	res, err := cmd.Run()
	if err != nil || res.Outcome != engine.OutcomeOK {
		t.Fatalf("%+v, %v", res, err)
	}
	if !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
		t.Error("what came back is not what went in")
	}
}

func TestCommandNeedNotReadItsInput(t *testing.T) {
	testbox.EachLevel(t, testCommandNeedNotReadItsInput, testbox.Confined...)
}

func testCommandNeedNotReadItsInput(t *testing.T, l testbox.Level) {
	cmd := l.Sandbox(t, engine.Spec{}).CommandContext(testbox.Within(t, time.Minute), "true")
	cmd.Stdin = io.LimitReader(zeros{}, 100<<20)
	if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeOK {
		t.Errorf("%+v, %v", res, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestOneWriterForBothStreamsKeepsOrder(t *testing.T) {
	testbox.EachLevel(t, testOneWriterForBothStreamsKeepsOrder)
}

func testOneWriterForBothStreamsKeepsOrder(t *testing.T, l testbox.Level) {
	var b bytes.Buffer
	cmd := l.Sandbox(t, engine.Spec{}).Command("sh", "-c", "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done")
	cmd.Stdout, cmd.Stderr = &b, &b
	if _, err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.ReplaceAll(b.String(), "\n", " "), "o1 e1 o2 e2 o3 e3 o4 e4 o5 e5 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFailingWriterDoesNotBlockTheCommand(t *testing.T) {
	testbox.EachLevel(t, testFailingWriterDoesNotBlockTheCommand, testbox.Confined...)
}

func testFailingWriterDoesNotBlockTheCommand(t *testing.T, l testbox.Level) {
	cmd := l.Sandbox(t, engine.Spec{}).CommandContext(testbox.Within(t, time.Minute), "head", "-c", "10M", "/dev/zero")
	cmd.Stdout = failing{}
	if res, err := cmd.Run(); !errors.Is(err, io.ErrNoProgress) || res.Outcome != engine.OutcomeOK {
		t.Errorf("%+v, %v; want the Writer's error, and that the command did not notice", res, err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrNoProgress }

// Each guest has exactly its own descriptors, whatever else is being started. One that the host forgot to mark
// close-on-exec is not among them.
func TestConcurrentLaunchesSeeOnlyTheirDescriptors(t *testing.T) {
	testbox.EachLevel(t, testConcurrentLaunchesSeeOnlyTheirDescriptors)
}

func testConcurrentLaunchesSeeOnlyTheirDescriptors(t *testing.T, l testbox.Level) {
	leak, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0) // no O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	high, err := unix.FcntlInt(uintptr(leak), unix.F_DUPFD, 700)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(high)

	eng := l.Open(t)
	boxes := []*engine.Sandbox{l.Start(t, eng, engine.Spec{}), l.Start(t, eng, engine.Spec{})}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			// The last descriptor is the one that the shell opens for its glob.
			cmd := boxes[i%2].CommandContext(testbox.Within(t, time.Minute), "sh", "-c",
				"cat; cd /proc/self/fd; echo *; readlink 0 1 2")
			cmd.Stdin = strings.NewReader(fmt.Sprintf("%d ", i))
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			res, err := cmd.Run()
			if err != nil || res.Outcome != engine.OutcomeOK {
				t.Errorf("%+v, %v", res, err)
				return
			}
			f := strings.Fields(out.String())
			if len(f) != 8 || f[0] != strconv.Itoa(i) || strings.Join(f[1:5], " ") != "0 1 2 3" {
				t.Errorf("guest %d: %q", i, f)
				return
			}
			for _, to := range f[5:] {
				if !strings.HasPrefix(to, "pipe:") {
					t.Errorf("guest %d: descriptor leads to %s", i, to)
				}
			}
		})
	}
	wg.Wait()
}

func TestTerminal(t *testing.T) { testbox.EachLevel(t, testTerminal) }

func testTerminal(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{})
	var out bytes.Buffer
	cmd := box.CommandContext(testbox.Within(t, time.Minute), "sh", "-c", `
		tty; stty size; ps -o tty= -p $$; echo $TERM
		trap 'stty size; exit 5' WINCH
		echo ready; while :; do sleep 0.01; done`)
	cmd.TTY = &engine.WindowSize{Rows: 33, Cols: 101}
	r, w := io.Pipe()
	cmd.Stdout = io.MultiWriter(&out, w)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	buf := make([]byte, 256)
	for !strings.Contains(seen.String(), "ready") {
		n, err := r.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(buf[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // until closed below
	if err := cmd.Resize(engine.WindowSize{Rows: 44, Cols: 55}); err != nil {
		t.Fatal(err)
	}
	res, err := cmd.Wait()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	want := "/dev/pts/0\r\n33 101\r\npts/0\r\nxterm-256color\r\nready\r\n44 55\r\n"
	got := out.String()
	if !l.HasNamespaces() { // the host's, which may have others
		got = regexp.MustCompile(`pts/\d+`).ReplaceAllString(got, "pts/0")
	}
	if got != want || res.ExitCode != 5 {
		t.Errorf("got %q, exit %d; want %q, exit 5", got, res.ExitCode, want)
	}
}

func TestTerminalInterrupts(t *testing.T) { testbox.EachLevel(t, testTerminalInterrupts) }

func testTerminalInterrupts(t *testing.T, l testbox.Level) {
	cmd := l.Sandbox(t, engine.Spec{}).CommandContext(testbox.Within(t, time.Minute), "sh", "-c",
		"echo ready; exec sleep 1000")
	cmd.TTY = &engine.WindowSize{Rows: 24, Cols: 80}
	r, w := io.Pipe()
	stdin, stdinW := io.Pipe()
	cmd.Stdin, cmd.Stdout = stdin, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, len("ready"))); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()      // until closed below
	if _, err := stdinW.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	res, err := cmd.Wait()
	_, _ = w.Close(), stdinW.Close()
	if err != nil || res.Outcome != engine.OutcomeSignal || res.Signal != unix.SIGINT {
		t.Errorf("%+v, %v", res, err)
	}
}

// A guest can open its own output again by name, even if the engine is root.
func TestOutputByName(t *testing.T) { testbox.EachLevel(t, testOutputByName, testbox.Confined...) }

func testOutputByName(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{})
	res := testbox.Run(t, box, "sh", "-c", "echo out >/dev/stdout; echo err >/dev/stderr; echo out | tee /dev/stderr")
	if string(res.Stdout) != "out\nout\n" || string(res.Stderr) != "err\nout\n" {
		t.Errorf("stdout %q, stderr %q", res.Stdout, res.Stderr)
	}
}
