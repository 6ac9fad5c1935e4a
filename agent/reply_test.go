package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestReplyText(t *testing.T) {
	for _, c := range []struct {
		reply agent.Reply
		err   error
		want  string
	}{
		{agent.Reply{}, nil, "exit 0"},
		{agent.Reply{Output: "a\nb", ExitCode: 3}, nil, "exit 3\na\nb"},
		{agent.Reply{Output: "a"}, &agent.TimeoutError{After: 1500 * time.Millisecond}, "timed out after 1.5s (sandbox removed)\na"},
		{agent.Reply{}, fmt.Errorf("%w: %w", agent.ErrInterrupted, context.Canceled), "interrupted (sandbox removed)"},
		{agent.Reply{}, fmt.Errorf("lost: %w", engine.ErrClosed), "error: sandbox lost (it ended while the command ran); no host shell fallback"},
		{agent.Reply{}, &agent.UnavailableError{Err: engine.ErrClosed}, "error: sandbox unavailable (closed); no host shell fallback"},
		{agent.Reply{}, errors.New("x"), "error: x"},
	} {
		if got := c.reply.Text(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// What goes wrong can be matched. A closed engine does without a sandbox.
func TestShellErrors(t *testing.T) {
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	sh := agent.NewShell(eng, engine.Spec{}, agent.Options{})
	if _, err := sh.Run(t.Context(), "true", 0); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("no timeout: %v", err)
	}
	if _, err := sh.Run(t.Context(), "", time.Minute); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("no command: %v", err)
	}
	var unavailable *agent.UnavailableError
	if _, err := sh.Run(t.Context(), "true", time.Minute); !errors.As(err, &unavailable) || !errors.Is(err, engine.ErrClosed) {
		t.Errorf("closed engine: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sh.Run(ctx, "true", time.Minute); !errors.As(err, &unavailable) {
		t.Errorf("canceled: %v", err)
	}
	if err := sh.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sh.Run(t.Context(), "true", time.Minute); !errors.As(err, &unavailable) || !errors.Is(err, engine.ErrClosed) {
		t.Errorf("closed shell: %v", err)
	}
}

func TestShellTimeout(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sh := agent.NewShell(eng, engine.Spec{}, agent.Options{})
	defer func() {
		if err := errors.Join(sh.Close(), eng.Close()); err != nil {
			t.Error(err)
		}
	}()
	var timeout *agent.TimeoutError
	reply, err := sh.Run(t.Context(), "echo begun; sleep 60", time.Second)
	if !errors.As(err, &timeout) || timeout.After != time.Second || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if reply.Output != "begun" {
		t.Errorf("output %q", reply.Output)
	}
	if reply, err := sh.Run(t.Context(), "exit 3", time.Minute); err != nil || reply.ExitCode != 3 {
		t.Errorf("%+v, %v", reply, err)
	}
}
