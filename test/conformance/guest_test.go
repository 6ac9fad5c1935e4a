//go:build linux

package conformance_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// rawGuest speaks the protocol itself, so that it can do so wrongly.
const rawGuest = `
import json, os, socket, sys, time
s = socket.socket(fileno=int(os.environ["TEGMEN_FD"]))
f = s.makefile("rb")
token = os.environ["TEGMEN_TOKEN"]
def send(line):
    try: s.sendall((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
    except BrokenPipeError: pass # then there is nothing to read either
def read():
    try: line = f.readline()
    except ConnectionResetError: line = b""
    return json.loads(line) if line else None
def request(method, params, id=1): send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
def ask(*request_):
    request(*request_)
    r = read()
    return "end" if r is None else r["error"]["data"]["type"] if "error" in r else "ok"
def hello(token=token): return ask("hello", {"protocol": 1, "token": token}, 0)
add = {"name": "add", "arguments": {"a": 1, "b": 2}}
`

// A guest in a sandbox that speaks the protocol itself.
func TestHostileGuest(t *testing.T) {
	testenv.Long(t)
	box := testbox.Start(t, testbox.Open(t), engine.Spec{Keep: true})
	begun, never := make(chan struct{}), make(chan error, 1)
	tools := testbox.Adders()
	broker.Add(tools, "never", "", func(ctx context.Context, _ struct{}) (int, error) {
		begun <- struct{}{}
		<-ctx.Done()
		never <- ctx.Err()
		return 0, ctx.Err()
	})
	broker.Add(tools, "until_begun", "", func(ctx context.Context, _ struct{}) (int, error) {
		<-begun
		return 0, nil
	})
	raw := func(t *testing.T, script string, wall time.Duration) *engine.Result {
		t.Helper()
		cmd := box.CommandContext(testbox.Within(t, time.Minute), "python3", "-c", rawGuest+script)
		cmd.Tools, cmd.Wall = tools, wall
		res, err := cmd.Run()
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for _, c := range []struct{ name, script, stdout, value string }{
		{"chuk: the channel is a pair of sockets",
			`print(os.environ["TEGMEN_FD"], s.family.name, s.type.name, repr(s.getpeername()), hello())`,
			"3 AF_UNIX SOCK_STREAM '' ok", ""},
		{"chuk: the end of the stream",
			`print(hello(), ask("result", {"value": [1]})); s.shutdown(socket.SHUT_RDWR); s.close(); f.close(); print("on")`,
			"ok ok\non", "[1]"},
		{"chuk: an end at once", `s.shutdown(socket.SHUT_RDWR)`, "", ""},
		{"chuk: another token", `print(hello("0" * 32), ask("tools/call", add))`, "unauthorized end", ""},
		{"chuk: rubbish in place of hello", `
for line in b"\xff\0", b"[" * 100_000, b"{}", b'{"jsonrpc":"2.0","id":1,"method":"hello","params":[]}':
    send(line)
    print(read()["error"]["data"]["type"], end=" ")
print(read())`, "parse_error parse_error invalid_request unauthorized None", ""},
		{"calls before hello", `print(ask("tools/call", add), hello())`, "unauthorized end", ""},
		{"a second result", `print(hello(), ask("result", {"value": 1}), ask("result", {"value": 2}))`, "ok ok completed",
			"1"},
		{"chuk: calls after the result",
			`print(hello(), ask("result", {"value": 1}), ask("tools/call", add), ask("tools/list", {}))`,
			"ok ok completed completed", "1"},
		{"chuk: more calls than a run may make",
			`print(hello(), [ask("tools/call", add) for _ in range(1002)].count("limit_exceeded"))`, "ok 2", ""},
		{"forged ids", `
print(hello())
request("tools/call", {"name": "never"}, "a")
print(ask("tools/call", add, "a"), ask("tools/call", {"name": "until_begun"}, "b"))`, "ok\ninvalid_request ok", ""},
		{"lists without end", `
print(hello(), [ask("tools/list", {}) for _ in range(3000)].count("limit_exceeded"), ask("tools/call", add))`, "ok 2000 ok", ""},
		{"chuk: its end is that of its calls",
			`print(hello()); request("tools/call", {"name": "never"}); print(ask("tools/call", {"name": "until_begun"}, 2))`,
			"ok\nok", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := raw(t, c.script, 0)
			if res.Outcome != engine.OutcomeOK || strings.TrimSpace(string(res.Stdout)) != c.stdout || string(res.Code.Value) != c.value {
				t.Errorf("%s, stdout %q, value %s, stderr %s", res.Outcome, res.Stdout, res.Code.Value, res.Stderr)
			}
			if strings.Contains(c.script, `"never"`) {
				toolCanceled(t, never)
				if n := len(res.Code.ToolCalls); n == 0 || res.Code.ToolCalls[n-1].Name != "never" ||
					res.Code.ToolCalls[n-1].Code != broker.CodeCanceled {
					t.Errorf("%+v", res.Code.ToolCalls)
				}
			}
		})
	}
	t.Run("a result, and no end", func(t *testing.T) {
		res := raw(t, `hello(); ask("result", {"value": 5}); time.sleep(60)`, enough)
		if res.Outcome != engine.OutcomeTimeout || string(res.Code.Value) != "5" {
			t.Errorf("%s, value %s", res.Outcome, res.Code.Value)
		}
	})
	t.Run("chuk: nobody is there after the end", func(t *testing.T) {
		// The process that it leaves behind holds the channel and has not said hello.
		res := raw(t, `
if os.fork():
    os._exit(0)
os.dup2(os.open("/dev/null", os.O_RDWR), 1); os.dup2(1, 2)
while os.getppid() != 1: time.sleep(0.01)
answer = ""
while answer != "end": answer = hello()
open("seen", "w").write("end")`, 0)
		if res.Outcome != engine.OutcomeOK {
			t.Fatalf("%s, %s", res.Outcome, res.Stderr)
		}
		if got := testbox.Output(t, box, "until [ -s seen ]; do sleep 0.01; done; cat seen"); got != "end" {
			t.Errorf("%q", got)
		}
	})
}
