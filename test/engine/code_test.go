//go:build linux

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// code runs code in a new sandbox at a level.
func code(t testing.TB, l testbox.Level, s engine.Spec, c engine.Code, tools *broker.Set) *engine.Result {
	t.Helper()
	res, err := l.Open(t).RunCode(testbox.Within(t, 2*time.Minute), l.Accept(s), c, tools)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestSession(t *testing.T) { testbox.EachLevel(t, testSession, testbox.Confined...) }

func testSession(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Wall: 20 * time.Second}})
	s := box.Session("python")
	defer s.Close()
	for i, c := range []struct {
		source, value, stdout, failed string
		outcome                       engine.Outcome
	}{
		{"print('one')\nx = add(20, 1)", "", "one\n", "", engine.OutcomeOK},
		{"print('two'); x * 2", "42", "two\n", "", engine.OutcomeOK},
		{"def f(): return x\nprint('three', flush=True)\n1/0", "", "three\n", "ZeroDivisionError", engine.OutcomeExit},
		{"x += f(); x", "42", "", "", engine.OutcomeOK},
		{"import sys; sys.exit(3)", "", "", "SystemExit", engine.OutcomeExit},
		{"import asyncio\nsum(await asyncio.gather(add(1, x), add(2, x)))", "87", "", "", engine.OutcomeOK},
		{"print('x' * 500_000); import sys; print('y' * 500_000, file=sys.stderr)", "null",
			strings.Repeat("x", 500_000) + "\n", "", engine.OutcomeOK},
	} {
		res, err := s.RunCode(t.Context(), engine.Code{Source: c.source}, testbox.Adders())
		if err != nil {
			t.Fatal(err)
		}
		failed := ""
		if res.Code.Error != nil {
			failed = res.Code.Error.Type
		}
		if string(res.Code.Value) != c.value || string(res.Stdout) != c.stdout || res.Outcome != c.outcome || failed != c.failed {
			t.Errorf("%d: %s, value %s, stdout %.100q, %+v, stderr %.500s; want %.200q", i, res.Outcome, res.Code.Value, res.Stdout,
				res.Code.Error, res.Stderr, fmt.Sprint(c))
		}
	}
	// The tools of an earlier run are not available to this one.
	res, err := s.RunCode(t.Context(), engine.Code{Source: "add(1, 2)"}, nil)
	if err != nil || res.Code.Error == nil {
		t.Errorf("%+v, %v", res, err)
	}
	res, err = s.RunCode(t.Context(), engine.Code{Source: "import os; print('last'); os._exit(3)"}, nil)
	if err != nil || res.Outcome != engine.OutcomeExit || res.ExitCode != 3 || string(res.Stdout) != "last\n" {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := s.RunCode(t.Context(), engine.Code{Source: "1"}, nil); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after its end: %v", err)
	}
}

func TestSessionTimeout(t *testing.T) { testbox.EachLevel(t, testSessionTimeout) }

func testSessionTimeout(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Wall: time.Second}})
	s := box.Session("python")
	defer s.Close()
	if res, err := s.RunCode(t.Context(), engine.Code{Source: "x = 1"}, nil); err != nil || res.Outcome != engine.OutcomeOK {
		t.Fatalf("%+v, %v", res, err)
	}
	res, err := s.RunCode(t.Context(), engine.Code{Source: "print('so far')\nwhile True: pass"}, nil)
	if err != nil || res.Outcome != engine.OutcomeTimeout || string(res.Stdout) != "so far\n" {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := s.RunCode(t.Context(), engine.Code{Source: "x"}, nil); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after its end: %v", err)
	}
	if out := testbox.Output(t, box, "echo alive"); out != "alive" {
		t.Errorf("the sandbox: %q", out)
	}
}

// With many calls in many sandboxes at once, no call gets the answer of another.
func TestManySandboxesManyCalls(t *testing.T) {
	testenv.Long(t)
	const boxes, calls = 100, 1000
	eng := testbox.Open(t)
	script := `
import asyncio
async def one(i):
    return await pair(me=me, n=i)
out = await asyncio.gather(*[one(i) for i in range(` + fmt.Sprint(calls) + `)])
assert out == [[me, i] for i in range(len(out))], "crossed"
len(out)`
	limits := engine.Limits{ToolCalls: calls, Wall: 5 * time.Minute}
	done := make(chan error, boxes)
	for i := range boxes {
		go func() {
			tools := new(broker.Set)
			broker.Add(tools, "pair", "", func(_ context.Context, in struct {
				Me int `json:"me"`
				N  int `json:"n"`
			}) ([]int, error) {
				if in.Me != i {
					return nil, fmt.Errorf("the call of %d at %d", in.Me, i)
				}
				return []int{in.Me, in.N}, nil
			})
			res, err := eng.RunCode(t.Context(), engine.Spec{Limits: limits},
				engine.Code{Language: "python", Source: script, Vars: map[string]any{"me": i}}, tools)
			if err == nil && (res.Outcome != engine.OutcomeOK || string(res.Code.Value) != fmt.Sprint(calls) ||
				res.Code.Tools["pair"].Calls != calls) {
				err = fmt.Errorf("%s, value %s, %+v, stderr %s", res.Outcome, res.Code.Value, res.Code.Tools, res.Stderr)
			}
			done <- err
		}()
	}
	for range boxes {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Code and its tools need nothing that a profile refuses.
func TestCodeUnderEachProfile(t *testing.T) {
	testbox.EachLevel(t, testCodeUnderEachProfile, testbox.Confined...)
}

func testCodeUnderEachProfile(t *testing.T, l testbox.Level) {
	testenv.NoRace(t)
	profiles := []engine.Seccomp{{}, {Profile: "strict"}, {Profile: "debug"}, {NoExec: true}, {Audit: true},
		testbox.NoFilter}
	if !l.HasNamespaces() {
		profiles = profiles[:2] // the others are refused there
	}
	for _, s := range profiles {
		res := code(t, l, engine.Spec{Seccomp: s},
			engine.Code{Language: "python",
				Source: "print(open('/proc/self/comm').read(), end='')\nadd(1, 2)"}, testbox.Adders())
		if res.Outcome != engine.OutcomeOK || string(res.Code.Value) != "3" || string(res.Stdout) != "python3\n" || len(res.Refused) > 0 {
			t.Errorf("%+v: %s, value %s, stdout %q, refused %v, stderr %s", s, res.Outcome, res.Code.Value, res.Stdout, res.Refused,
				res.Stderr)
		}
	}
}

// Descriptors that a guest sends on the channel are dropped, and what it sends raw is bounded. The host goes on.
func TestHostileGuest(t *testing.T) {
	testenv.NoRace(t)
	const script = `
import array, json, os, socket
s = socket.socket(fileno=3)
fds = array.array("i", [os.open("/dev/null", os.O_RDONLY) for _ in range(250)])
def send(text, passed=None):
    s.sendmsg([text.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)] if passed else [])
f = s.makefile("rb")
def ask(method, params):
    send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n", fds)
    return json.loads(f.readline())
ask("hello", {"protocol": 1, "token": os.environ["TEGMEN_TOKEN"]})
for i in range(40): # 10,000 of them
    assert ask("tools/call", {"name": "add", "arguments": {"a": i, "b": 1}})["result"]["value"] == i + 1
chunk = b"x" * (1 << 20)
for i in range(100): s.sendall(chunk) # a line of 100 MB
s.sendall(b"\n")
assert json.loads(f.readline())["error"]["data"]["type"] == "too_large"
s.sendall(b"[" * 100_000 + b"\n" + b"\xff\xfe\n")
assert json.loads(f.readline())["error"]["data"]["type"] == "parse_error"
assert json.loads(f.readline())["error"]["data"]["type"] == "parse_error"
assert ask("result", {"value": "alive"})["result"] == {}
assert ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})["error"]["data"]["type"] == "completed"
s.shutdown(socket.SHUT_WR)
print(f.readline())`
	eng := testbox.Open(t)
	before := descriptors(t)
	box := testbox.Start(t, eng, engine.Spec{})
	cmd := box.CommandContext(testbox.Within(t, time.Minute), "python3", "-c", script)
	cmd.Tools = testbox.Adders()
	res, err := cmd.Run()
	if err != nil || res.Outcome != engine.OutcomeOK || string(res.Code.Value) != `"alive"` || string(res.Stdout) != "b''\n" ||
		res.Code.Tools["add"].Calls != 40 {
		t.Errorf("%v, %+v, stderr %s", err, res, res.Stderr)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, then %d", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// A daemon thread that waits for a tool ends with the code, without a message.
func TestDaemonThreadInACall(t *testing.T) {
	tools := testbox.Adders()
	broker.Add(tools, "hang", "", func(ctx context.Context, _ struct{}) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	eng := testbox.Open(t)
	for range 10 {
		res, err := eng.RunCode(testbox.Within(t, time.Minute), engine.Spec{}, engine.Code{Language: "python", Source: `
import threading
threading.Thread(target=hang, daemon=True).start()
add(1, 2)`}, tools)
		if err != nil || res.Outcome != engine.OutcomeOK || string(res.Code.Value) != "3" || len(res.Stderr) > 0 {
			t.Fatalf("%v, %s %d, value %s, stderr %s", err, res.Outcome, res.ExitCode, res.Code.Value, res.Stderr)
		}
	}
}

// A check is called once, before anything starts, and the caller gets its error.
func TestCheckIsAskedOnce(t *testing.T) {
	asked := 0
	unwanted := errors.New("not this")
	c := engine.Code{Language: "python", Source: "1", Check: func(source string) error {
		asked++
		if source == "2" {
			return unwanted
		}
		return nil
	}}
	if res := code(t, testbox.Namespaces, engine.Spec{}, c, nil); string(res.Code.Value) != "1" || asked != 1 {
		t.Errorf("value %s, asked %d times", res.Code.Value, asked)
	}
	c.Source = "2"
	if _, err := testbox.Open(t).RunCode(t.Context(), engine.Spec{}, c, nil); !errors.Is(err, unwanted) || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
