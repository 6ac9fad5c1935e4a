//go:build linux

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// Runs take turns, and each has its own output, value and tools.
func TestSessionTurns(t *testing.T) { testbox.EachLevel(t, testSessionTurns, testbox.Confined...) }

func testSessionTurns(t *testing.T, l testbox.Level) {
	s := l.Sandbox(t, engine.Spec{Keep: true}).Session("python")
	defer s.Close()
	errs := make(chan error)
	for i := range 20 {
		go func() {
			tools := new(broker.Set)
			broker.Add(tools, "me", "", func(context.Context, struct{}) (int, error) { return i, nil })
			res, err := s.RunCode(t.Context(), engine.Code{Source: "x = me(); print(x); import sys; print(x, file=sys.stderr); x"},
				tools)
			if want := fmt.Sprint(i); err == nil &&
				(string(res.Code.Value) != want || string(res.Stdout) != want+"\n" || string(res.Stderr) != want+"\n") {
				err = fmt.Errorf("%d: value %s, stdout %q, stderr %q", i, res.Code.Value, res.Stdout, res.Stderr)
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// Close ends the run that is under way and refuses the one that waits for its turn. The sandbox goes on.
func TestSessionClose(t *testing.T) { testbox.EachLevel(t, testSessionClose, testbox.Confined...) }

func testSessionClose(t *testing.T, l testbox.Level) {
	for _, source := range []string{"hang()",
		"import threading\nthreading.Thread(target=hang).start()\nwhile True: pass"} {
		box := l.Sandbox(t, engine.Spec{})
		s := box.Session("python")
		tools, calls := testbox.Hang()
		type end struct {
			res *engine.Result
			err error
		}
		first, second := make(chan end, 1), make(chan end, 1)
		go func() { res, err := s.RunCode(t.Context(), engine.Code{Source: source}, tools); first <- end{res, err} }()
		<-calls
		go func() {
			res, err := s.RunCode(t.Context(), engine.Code{Source: source}, tools)
			second <- end{res, err}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := s.RunCode(ctx, engine.Code{Source: "1"}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a turn: %v", err)
		}
		cancel()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if e := <-first; e.err != nil || e.res.Outcome != engine.OutcomeLost || len(e.res.Code.ToolCalls) != 1 {
			t.Errorf("%+v, %v", e.res, e.err)
		}
		if e := <-second; !errors.Is(e.err, engine.ErrClosed) {
			t.Errorf("%+v, %v", e.res, e.err)
		}
		if out := testbox.Output(t, box, "echo alive"); out != "alive" {
			t.Errorf("the sandbox says %q", out)
		}
	}
}
