//go:build linux

package engine_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

func TestCmdPipes(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{})
	cmd := box.CommandContext(testbox.Within(t, time.Minute), "sh", "-c", `read a; echo "out $a"; echo "err $a" >&2; cat`)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]func() error{
		"StdinPipe":      func() error { _, err := cmd.StdinPipe(); return err },
		"StdoutPipe":     func() error { _, err := cmd.StdoutPipe(); return err },
		"StderrPipe":     func() error { _, err := cmd.StderrPipe(); return err },
		"Output":         func() error { _, err := cmd.Output(); return err },
		"CombinedOutput": func() error { _, err := cmd.CombinedOutput(); return err },
	} {
		if err := again(); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s of a command with pipes: %v", name, err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, "x\nrest"); err != nil {
		t.Error(err)
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	out, err := io.ReadAll(stdout)
	if err != nil || string(out) != "out x\nrest" {
		t.Errorf("stdout %q, %v", out, err)
	}
	errs, err := io.ReadAll(stderr)
	if err != nil || string(errs) != "err x\n" {
		t.Errorf("stderr %q, %v", errs, err)
	}
	res, err := cmd.Wait()
	if err != nil || res.Outcome != engine.OutcomeOK || res.Stdout != nil || res.Stderr != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// Wait closes the pipes that the caller has not closed, so a command that reads to
// the end of its input ends.
func TestWaitClosesPipes(t *testing.T) {
	cmd := testbox.Sandbox(t, engine.Spec{}).CommandContext(testbox.Within(t, time.Minute), "true")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write: %v", err)
	}
	if _, err := stdout.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read: %v", err)
	}
}

func TestOutput(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Output: 8}})
	script := func(s string) *engine.Cmd {
		return box.CommandContext(testbox.Within(t, time.Minute), "sh", "-c", s)
	}
	if out, err := script("echo out; echo err >&2").Output(); err != nil || string(out) != "out\n" {
		t.Errorf("Output: %q, %v", out, err)
	}
	if out, err := script("echo a; echo b >&2; echo c").CombinedOutput(); err != nil || string(out) != "a\nb\nc\n" {
		t.Errorf("CombinedOutput: %q, %v", out, err)
	}
	if out, err := script("echo 1234; echo 5678 >&2").CombinedOutput(); err != nil || string(out) != "1234\n567" {
		t.Errorf("CombinedOutput of more than Limits.Output: %q, %v", out, err)
	}
	terminal := script("echo a; echo b >&2")
	terminal.TTY = &engine.WindowSize{Rows: 24, Cols: 80}
	if out, err := terminal.CombinedOutput(); err != nil || string(out) != "a\r\nb\r\n" {
		t.Errorf("CombinedOutput of a terminal: %q, %v", out, err)
	}
	for _, c := range []struct {
		script, says string
		outcome      engine.Outcome
	}{
		{"echo out; exit 3", "sh: exit status 3", engine.OutcomeExit},
		{"echo out; kill -TERM $$", "sh: terminated", engine.OutcomeSignal},
		{"echo out; sleep 60", "sh: timeout", engine.OutcomeTimeout},
	} {
		for name, output := range map[string]func(*engine.Cmd) ([]byte, error){
			"Output": (*engine.Cmd).Output, "CombinedOutput": (*engine.Cmd).CombinedOutput,
		} {
			cmd := script(c.script)
			if c.outcome == engine.OutcomeTimeout {
				cmd.Wall = 300 * time.Millisecond
			}
			out, err := output(cmd)
			var failed *engine.OutcomeError
			if !errors.As(err, &failed) || failed.Result.Outcome != c.outcome || err.Error() != c.says ||
				string(out) != "out\n" {
				t.Errorf("%s of %s: %q, %v", name, c.script, out, err)
			}
		}
	}
	missing := box.Command("no-such-program")
	var exec *engine.ExecError
	if out, err := missing.CombinedOutput(); !errors.As(err, &exec) || out != nil {
		t.Errorf("CombinedOutput of a missing program: %q, %v", out, err)
	}
}

// A command whose output goes past Limits.Discard is ended, whatever collects it.
func TestDiscard(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Output: 8, Discard: engine.MiB}})
	_, err := box.CommandContext(testbox.Within(t, time.Minute), "cat", "/dev/zero").CombinedOutput()
	var failed *engine.OutcomeError
	if !errors.As(err, &failed) || failed.Result.Outcome != engine.OutcomeOutput {
		t.Fatalf("got %v", err)
	}
	testbox.Ends(engine.OutcomeOutput, 137, string(engine.LimitDiscard)).Check(t, failed.Result)
}

func TestExtraFiles(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	cmd := box.CommandContext(testbox.Within(t, time.Minute), "sh", "-c", "cat <&3; echo to five >&5")
	cmd.ExtraFiles = []*os.File{nil, nil, w}
	if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeOK || len(res.Stdout) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	got := make([]byte, len("to five\n"))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "to five\n" {
		t.Errorf("%q, %v", got, err)
	}

	// With tools, 3 is theirs.
	cmd = box.CommandContext(testbox.Within(t, time.Minute), "sh", "-c", "echo $TEGMEN_FD; echo to four >&4")
	cmd.Tools, cmd.ExtraFiles = testbox.Adders(), []*os.File{w}
	if res, err := cmd.Run(); err != nil || string(res.Stdout) != "3\n" {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "to four\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestExtraFilesAreSafe(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{})
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, f := range map[string]*os.File{"a directory": dir, "a file": file} {
		cmd := box.Command("true")
		cmd.ExtraFiles = []*os.File{f}
		if _, err := cmd.Run(); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	code, err := box.CodeContext(t.Context(), engine.Code{Language: "sh"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	code.ExtraFiles = []*os.File{nil}
	if _, err := code.Run(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("code: %v", err)
	}
}
