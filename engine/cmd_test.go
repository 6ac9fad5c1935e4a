//go:build linux

package engine_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// Path, Args and Dir are as in os/exec.
func TestCmdFields(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true, Env: []string{"A=spec", "B=spec"}})
	for _, c := range []struct {
		name string
		set  func(*engine.Cmd)
		want string
	}{
		{"the program's name", func(c *engine.Cmd) { c.Args = []string{"another", "-c", "echo $0"} }, "another"},
		{"an absolute path", func(c *engine.Cmd) { c.Path, c.Args = "/bin/echo", []string{"", "x"} }, "x"},
		{"no arguments", func(c *engine.Cmd) { c.Path, c.Args = "pwd", nil }, "/workspace"},
		{"a directory", func(c *engine.Cmd) { c.Dir, c.Args = "/usr", []string{"sh", "-c", "pwd"} }, "/usr"},
		{"a relative directory", func(c *engine.Cmd) { c.Dir, c.Args = "..", []string{"sh", "-c", "pwd"} }, "/"},
		{"the environment", func(c *engine.Cmd) {
			c.ExtraEnv, c.Args = []string{"B=cmd"}, []string{"sh", "-c", "echo $A $B $SHELL"}
		}, "spec cmd"},
		{"PATH", func(c *engine.Cmd) {
			c.ExtraEnv, c.Path, c.Args = []string{"PATH=/nowhere:/bin:/usr/bin"}, "sh", []string{"sh", "-c", "echo $PATH"}
		}, "/nowhere:/bin:/usr/bin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := box.CommandContext(testbox.Within(t, time.Minute), "sh")
			c.set(cmd)
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestCmdIsChecked(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	for name, set := range map[string]func(*engine.Cmd){
		"no program":      func(c *engine.Cmd) { c.Path = "" },
		"a NUL byte":      func(c *engine.Cmd) { c.Args = []string{"true", "a\x00b"} },
		"no variable":     func(c *engine.Cmd) { c.ExtraEnv = []string{"A"} },
		"negative time":   func(c *engine.Cmd) { c.Wall = -1 },
		"negative delay":  func(c *engine.Cmd) { c.WaitDelay = -1 },
		"terminal, error": func(c *engine.Cmd) { c.TTY, c.Stderr = new(engine.WindowSize), io.Discard },
		"a nil file":      func(c *engine.Cmd) { c.Stdin = (*os.File)(nil) },
		"a nil output":    func(c *engine.Cmd) { c.Stdout = (*os.File)(nil) },
	} {
		cmd := box.Command("true")
		set(cmd)
		if _, err := cmd.Run(); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := cmd.Wait(); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: waiting for what was not started: %v", name, err)
		}
	}
}

// The methods for a running command refuse one that does not run.
func TestCmdOutOfOrder(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	cmd := box.CommandContext(testbox.Within(t, time.Minute), "true")
	idle := map[string]func() error{
		"Signal":      func() error { return cmd.Signal(syscall.SIGTERM) },
		"SignalGroup": func() error { return cmd.SignalGroup(syscall.SIGTERM) },
		"Resize":      func() error { return cmd.Resize(engine.WindowSize{Rows: 1, Cols: 1}) },
		"Wait":        func() error { _, err := cmd.Wait(); return err },
	}
	for name, f := range idle {
		if err := f(); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s before Start: %v", name, err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := idle["Resize"](); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("Resize without a terminal: %v", err)
	}
	if _, err := cmd.StdoutPipe(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("StdoutPipe after Start: %v", err)
	}
	if _, err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"Signal", "SignalGroup"} {
		if err := idle[name](); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
	missing := box.Command("no-such-program")
	if err := missing.Start(); err == nil {
		t.Error("it has started")
	}
	if err := missing.Signal(syscall.SIGTERM); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("Signal of what did not start: %v", err)
	}
	if _, err := missing.Wait(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("Wait of what did not start: %v", err)
	}
}

func TestSignal(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	for name, signal := range map[string]func(*engine.Cmd, syscall.Signal) error{
		"Signal": (*engine.Cmd).Signal, "SignalGroup": (*engine.Cmd).SignalGroup,
	} {
		cmd := box.CommandContext(testbox.Within(t, time.Minute), "sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := signal(cmd, syscall.SIGUSR1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		res, err := cmd.Wait()
		if err != nil || res.Outcome != engine.OutcomeSignal || res.Signal != syscall.SIGUSR1 ||
			res.ExitCode != 128+int(syscall.SIGUSR1) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

func TestResize(t *testing.T) {
	cmd := testbox.Sandbox(t, engine.Spec{}).CommandContext(testbox.Within(t, time.Minute),
		"sh", "-c", "stty size; read line; stty size")
	cmd.TTY = &engine.WindowSize{Rows: 11, Cols: 22}
	typed, keys := io.Pipe()
	shown, screen := io.Pipe()
	cmd.Stdin, cmd.Stdout = typed, screen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer typed.Close()
	first := make([]byte, len("11 22\r\n"))
	if _, err := io.ReadFull(shown, first); err != nil || string(first) != "11 22\r\n" {
		t.Errorf("%q, %v", first, err)
	}
	if err := cmd.Resize(engine.WindowSize{Rows: 33, Cols: 44}); err != nil {
		t.Error(err)
	}
	go func() { _, _ = keys.Write([]byte("\n")) }()
	rest := make(chan string)
	go func() { b, _ := io.ReadAll(shown); rest <- string(b) }()
	if res, err := cmd.Wait(); err != nil || res.Outcome != engine.OutcomeOK {
		t.Errorf("%+v, %v", res, err)
	}
	if err := screen.Close(); err != nil {
		t.Error(err)
	}
	if got := <-rest; got != "\r\n33 44\r\n" {
		t.Errorf("got %q", got)
	}
}
