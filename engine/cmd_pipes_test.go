//go:build linux

package engine_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// A command is waited for once, as in os/exec. After Run it panicked.
func TestWaitTwice(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	ran := box.Command("true")
	if _, err := ran.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := ran.Wait(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("Wait after Run: %v", err)
	}
	waited := box.Command("true")
	if err := waited.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := waited.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := waited.Wait(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("Wait twice: %v", err)
	}
}

// The pipes work with a terminal as well: there the engine copies, and their far ends
// were closed before it could.
func TestPipesOfATerminal(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	cmd := box.CommandContext(testbox.Within(t, testbox.Patience), "sh", "-c", "read x; echo got $x")
	cmd.TTY = &engine.WindowSize{Rows: 24, Cols: 80}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "line\n"); err != nil {
		t.Error(err)
	}
	b, _ := io.ReadAll(out) // what has been read until then is compared
	if res, err := cmd.Wait(); err != nil || res.Outcome != engine.OutcomeOK || !strings.Contains(string(b), "got line") {
		t.Errorf("%q, %v", b, err)
	}
}
