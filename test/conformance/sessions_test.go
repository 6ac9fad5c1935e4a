//go:build linux

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// runner is what a caller needs to know of a sandbox or a session.
type runner interface {
	RunCode(ctx context.Context, c engine.Code, tools *broker.Set) (*engine.Result, error)
}

// Sandboxes and sessions of one user or of many.
func TestSessions(t *testing.T) {
	eng := testbox.Open(t)
	t.Run("codecell: sandboxes and sessions are used alike", func(t *testing.T) {
		box := testbox.Start(t, eng, engine.Spec{Keep: true})
		session := box.Session("python")
		defer session.Close()
		for _, r := range []runner{box, session} {
			res, err := r.RunCode(t.Context(), piece{source: "print('x')\nadd(1, 2)"}.code(), testbox.Adders())
			if err != nil || string(res.Code.Value) != "3" || string(res.Stdout) != "x\n" || res.Outcome != engine.OutcomeOK {
				t.Errorf("%T: %+v, %v", r, res, err)
			}
		}
	})
	t.Run("OpenChia: canceled before it starts", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := new(broker.Set)
		broker.Add(s, "called", "", func(context.Context, struct{}) (int, error) { t.Error("it ran"); return 0, nil })
		box := testbox.Start(t, eng, engine.Spec{Keep: true})
		session := box.Session("python")
		defer session.Close()
		for _, r := range []runner{box, session} {
			if res, err := r.RunCode(ctx, piece{source: "called()"}.code(), s); !errors.Is(err, context.Canceled) || res != nil {
				t.Errorf("%T: %+v, %v", r, res, err)
			}
		}
		if res, err := eng.RunCode(ctx, engine.Spec{}, piece{source: "called()"}.code(), s); !errors.Is(err, context.Canceled) ||
			res != nil {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("axio: runs of one session take turns", func(t *testing.T) {
		session := testbox.Start(t, eng, engine.Spec{Keep: true}).Session("python")
		defer session.Close()
		var inside atomic.Int32
		s := new(broker.Set)
		broker.Add(s, "enter", "", func(context.Context, struct{}) (bool, error) { return inside.Add(1) == 1, nil })
		broker.Add(s, "leave", "", func(context.Context, struct{}) (bool, error) { return inside.Add(-1) == 0, nil })
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				res, err := session.RunCode(t.Context(),
					piece{source: "import os\nalone = enter()\nn = globals().get('n', 0) + 1\n[alone, leave()]"}.code(), s)
				if err != nil || string(res.Code.Value) != "[true,true]" {
					t.Errorf("%+v, %v", res, err)
				}
			})
		}
		wg.Wait()
		if res, err := session.RunCode(t.Context(), piece{source: "n"}.code(), nil); err != nil || string(res.Code.Value) != "8" {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("axio: sessions run at once, and are apart", func(t *testing.T) {
		var both sync.WaitGroup
		both.Add(2)
		met := make(chan struct{})
		go func() { both.Wait(); close(met) }()
		s := new(broker.Set)
		broker.Add(s, "meet", "", func(ctx context.Context, _ struct{}) (bool, error) {
			both.Done()
			select {
			case <-met:
				return true, nil
			case <-ctx.Done():
				return false, ctx.Err()
			}
		})
		var wg sync.WaitGroup
		for i := range 2 {
			session := testbox.Start(t, eng, engine.Spec{Keep: true}).Session("python")
			defer session.Close()
			wg.Go(func() {
				me := fmt.Sprint(i)
				for _, c := range []struct{ source, value string }{
					{"import os, pathlib\nwho = " + me + "\npathlib.Path('who').write_text(str(who))\nmeet()", "true"},
					{"[who, pathlib.Path('who').read_text(), os.listdir()]", "[" + me + `,"` + me + `",["who"]]`},
				} {
					res, err := session.RunCode(testbox.Within(t, testbox.Patience*6), piece{source: c.source}.code(), s)
					if err != nil || string(res.Code.Value) != c.value {
						t.Errorf("%+v, %v", res, err)
					}
				}
			})
		}
		wg.Wait()
	})
	t.Run("axio: a sandbox is over when it is closed, with its files", func(t *testing.T) {
		for range 2 {
			box := testbox.Start(t, eng, engine.Spec{Keep: true})
			res, err := box.RunCode(t.Context(), piece{source: "import os\n" +
				"left = os.listdir() + os.listdir('/tmp') + os.listdir('/dev/shm')\n" +
				"for d in '.', '/tmp', '/dev/shm': open(d + '/file', 'w')\nleft"}.code(), nil)
			if err != nil || string(res.Code.Value) != "[]" {
				t.Errorf("%+v, %v", res, err)
			}
			if res, err = box.RunCode(t.Context(), piece{source: "os = __import__('os')\nos.listdir()"}.code(), nil); err != nil ||
				string(res.Code.Value) != `["file"]` {
				t.Errorf("then %+v, %v", res, err)
			}
			if err := box.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := box.RunCode(t.Context(), piece{source: "1"}.code(), nil); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
	t.Run("axio: an engine that is closed closes all", func(t *testing.T) {
		own := testbox.OpenWith(t, engine.Options{})
		mark := testbox.Marker(1970)
		var boxes []*engine.Sandbox
		var sessions []*engine.Session
		for range 3 {
			box, err := own.Start(t.Context(), engine.Spec{Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			s := box.Session("python")
			if res, err := s.RunCode(t.Context(), piece{source: "import subprocess\nsubprocess.Popen(['sleep', mark])\nNone",
				vars: map[string]any{"mark": mark}}.code(), nil); err != nil || res.Outcome != engine.OutcomeOK {
				t.Fatalf("%+v, %v", res, err)
			}
			boxes, sessions = append(boxes, box), append(sessions, s)
		}
		testbox.Runs(t, mark)
		if err := own.Close(); err != nil {
			t.Fatal(err)
		}
		if left := testbox.Alive(t, mark); len(left) > 0 {
			t.Errorf("alive: %v", left)
		}
		for i := range boxes {
			<-boxes[i].Done()
			if _, err := sessions[i].RunCode(t.Context(), piece{source: "1"}.code(), nil); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("a session of it: %v", err)
			}
			if err := sessions[i].Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := own.RunCode(t.Context(), engine.Spec{}, piece{source: "1"}.code(), nil); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
