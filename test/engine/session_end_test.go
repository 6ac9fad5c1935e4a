//go:build linux

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// Refused code does not reach the session, which goes on.
func TestRefusedCodeKeepsTheSession(t *testing.T) {
	s := testbox.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Wall: 20 * time.Second}}).Session("python")
	defer s.Close()
	no := errors.New("no")
	odd := new(broker.Set)
	odd.AddRaw(broker.Tool{Name: "not a name"})
	refused := func(when string) {
		t.Helper()
		for name, c := range map[string]struct {
			code  engine.Code
			tools *broker.Set
			want  error
		}{
			"a variable's name":  {engine.Code{Source: "1", Vars: map[string]any{"a b": 1}}, nil, engine.ErrInvalid},
			"a variable's value": {engine.Code{Source: "1", Vars: map[string]any{"a": func() {}}}, nil, engine.ErrInvalid},
			"tools":              {engine.Code{Source: "1"}, odd, engine.ErrInvalid},
			"a check":            {engine.Code{Source: "1", Check: func(string) error { return no }}, nil, no},
			"its length":         {engine.Code{Source: "#" + strings.Repeat("x", 9<<20)}, nil, engine.ErrInvalid},
		} {
			if res, err := s.RunCode(t.Context(), c.code, c.tools); !errors.Is(err, c.want) || res != nil {
				t.Errorf("%s, %s: %+v, %v", name, when, res, err)
			}
		}
	}
	refused("before the first run")
	if res, err := s.RunCode(t.Context(), engine.Code{Source: "x = 42"}, nil); err != nil || res.Outcome != engine.OutcomeOK {
		t.Fatalf("%+v, %v", res, err)
	}
	refused("after it")
	if res, err := s.RunCode(t.Context(), engine.Code{Source: "x"}, nil); err != nil || string(res.Code.Value) != "42" {
		t.Errorf("%+v, %v", res, err)
	}
}

// stops answers for its run, and then neither reads nor ends.
const stops = `import os, signal, stat
for fd in range(3, 30):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode): break
    except OSError: pass
os.write(fd, b'{"jsonrpc":"2.0","id":"x","method":"result","params":{"value":1}}\n')
os.kill(os.getpid(), signal.SIGSTOP)`

// If an interpreter does not read its next job, that job reaches its time limit.
func TestSessionThatDoesNotRead(t *testing.T) {
	testbox.EachLevel(t, testSessionThatDoesNotRead, testbox.Confined...)
}

func testSessionThatDoesNotRead(t *testing.T, l testbox.Level) {
	testenv.Long(t)
	for name, source := range map[string]string{"short": "1", "long": "#" + strings.Repeat("x", 4<<20)} {
		t.Run(name, func(t *testing.T) {
			s := l.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Wall: 2 * time.Second}}).Session("python")
			if res, err := s.RunCode(t.Context(), engine.Code{Source: stops}, nil); err != nil || string(res.Code.Value) != "1" {
				t.Fatalf("%+v, %v", res, err)
			}
			ended := make(chan error, 1)
			go func() {
				res, err := s.RunCode(t.Context(), engine.Code{Source: source}, nil)
				if err == nil && (res.Outcome != engine.OutcomeTimeout || res.Code.Value != nil) {
					err = fmt.Errorf("%+v", res)
				}
				ended <- errors.Join(err, s.Close())
			}()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("no end of it")
			}
		})
	}
}

// Close ends a run that is under way, whatever its limit.
func TestSessionClosedWhileItRuns(t *testing.T) {
	testbox.EachLevel(t, testSessionClosedWhileItRuns, testbox.Confined...)
}

func testSessionClosedWhileItRuns(t *testing.T, l testbox.Level) {
	s := l.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Wall: engine.UnlimitedTime}}).Session("python")
	running := make(chan struct{})
	tools := new(broker.Set)
	broker.Add(tools, "running", "", func(context.Context, struct{}) (int, error) { close(running); return 0, nil })
	ended := make(chan error, 2)
	go func() {
		res, err := s.RunCode(t.Context(), engine.Code{Source: "running()\nwhile True: pass"}, tools)
		if err == nil && res.Outcome != engine.OutcomeLost {
			err = fmt.Errorf("%+v", res)
		}
		ended <- err
	}()
	<-running
	go func() { ended <- s.Close() }()
	for range 2 {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no end of it")
		}
	}
	if _, err := s.RunCode(t.Context(), engine.Code{Source: "1"}, nil); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after its end: %v", err)
	}
}

// Starting a command twice, by mistake, does not disturb it.
func TestStartedTwice(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	again := make(chan struct{})
	tools := new(broker.Set)
	broker.Add(tools, "again", "", func(context.Context, struct{}) (int, error) { <-again; return 7, nil })
	cmd, err := box.CodeContext(t.Context(), engine.Code{Language: "python",
		Source: "print('so far')\nagain()\nwhile True: pass"}, tools)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Wall = 2 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("the second time: %v", err)
	}
	close(again)
	ended := make(chan *engine.Result, 1)
	go func() {
		res, err := cmd.Wait()
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	select {
	case res := <-ended:
		if res.Outcome != engine.OutcomeTimeout || string(res.Stdout) != "so far\n" || res.Code.Tools["again"].Calls != 1 {
			t.Errorf("got %+v", res)
		}
	case <-time.After(20 * time.Second):
		t.Error("no end of it")
	}
}

// blocked is a Writer that takes nothing until it is closed.
type blocked chan struct{}

func (b blocked) Write(p []byte) (int, error) { <-b; return len(p), nil }

// A Writer that blocks holds up neither the answer nor the end.
func TestSessionWithABlockedWriter(t *testing.T) {
	testbox.EachLevel(t, testSessionWithABlockedWriter, testbox.Confined...)
}

func testSessionWithABlockedWriter(t *testing.T, l testbox.Level) {
	testenv.Long(t)
	for name, source := range map[string]string{"answers": "print('x', flush=True); 1",
		"does not": "print('x', flush=True)\nwhile True: pass"} {
		s := l.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Wall: 2 * time.Second}}).Session("python")
		w := make(blocked)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if _, err := s.RunCode(t.Context(), engine.Code{Source: source, Stdout: w}, nil); err == nil {
				t.Errorf("%s: no error for output that was not taken", name)
			}
			if _, err := s.RunCode(t.Context(), engine.Code{Source: "1"}, nil); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("%s: then %v", name, err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: no end of it", name)
		}
		close(w)
		<-ended
	}
}
