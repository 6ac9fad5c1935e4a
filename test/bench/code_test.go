//go:build linux

package bench_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// pythonCalls takes turns between a call of a tool and the same message over a plain socket pair to a process that
// sends it back.
const pythonCalls = `
import json, os, socket, time
a, b = socket.socketpair()
if os.fork() == 0:
    a.close()
    while True:
        d = b.recv(1 << 16)
        if not d: os._exit(0)
        b.sendall(d)
b.close()
fd, n = a.fileno(), 0
def bare(**arguments):
    global n
    n += 1
    line = (json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "add", "arguments": arguments}}) + "\n").encode()
    sent, got = 0, []
    while sent < len(line):
        sent += os.write(fd, line[sent:sent + 65536])
        got.append(os.read(fd, 1 << 20))
    while sum(map(len, got)) < len(line): got.append(os.read(fd, 1 << 20))
    return json.loads(b"".join(got))
def took(f, k, **arguments):
    t = time.perf_counter_ns()
    for i in range(k): f(**arguments)
    return (time.perf_counter_ns() - t) // k
def contest(rounds, k, ours, theirs, **arguments):
    took(ours, k, **arguments); took(theirs, k, **arguments)
    times = [(took(ours, k, **arguments), took(theirs, k, **arguments)) for _ in range(rounds)]
    return [sorted(t)[rounds // 2] for t in zip(*times)]
big = "x" * (1 << 20)
[contest(60, 50, add, bare, a=1, b=2), contest(20, 1, length, bare, text=big)]`

// code measures runs of code and their calls.
func (w *bench) code() []row {
	eng := testbox.Open(w)
	tools := testbox.Adders()
	broker.Add(tools, "length", "", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (int, error) {
		return len(in.Text), nil
	})
	s := engine.Spec{Limits: engine.Limits{ToolCalls: engine.UnlimitedCount}}
	var python [2][2]time.Duration
	w.value(&python)(eng.RunCode(w.Context(), s, engine.Code{Language: "python", Source: pythonCalls}, tools))

	guest := filepath.Join(w.dir, "goguest")
	if msg, err := testbox.GoBuild(guest, "./testdata/goguest").CombinedOutput(); err != nil {
		w.Fatalf("go build: %v: %s", err, msg)
	}
	inGo := w.spec()
	inGo.Limits = s.Limits
	cmd := testbox.Start(w, eng, inGo).Command("/noop/goguest", "contest")
	cmd.Tools = tools
	var program [2]time.Duration
	w.value(&program)(cmd.Run())

	m := contest(60,
		func() {
			var none json.RawMessage
			w.value(&none)(eng.RunCode(w.Context(), engine.Spec{}, engine.Code{Language: "python", Source: "print(1)"}, tools))
		},
		func() { w.command("/usr/bin/python3", "-I", "-c", "import json, ast; print(1)") })
	return []row{
		{"tool call from Python", "the same over a bare socket pair in Python", python[0][0], python[0][1], 1.5},
		{"tool call from Python, 1 MiB of text", "the same, there and back", python[1][0], python[1][1], 0},
		{"tool call from Go", "the same over a bare socket pair in Go", program[0], program[1], 1.3},
		{"`print(1)` in Python: sandbox, run, end", "`python3 -I -c 'import json, ast; print(1)'`", m[0], m[1], 1.12},
	}
}

// value decodes the value of a Result.
func (w *bench) value(v any) func(*engine.Result, error) {
	return func(res *engine.Result, err error) {
		w.Helper()
		if err != nil || res.Outcome != engine.OutcomeOK {
			w.Fatalf("%+v, %v", res, err)
		}
		if err := json.Unmarshal(res.Code.Value, v); err != nil {
			w.Fatal(err)
		}
	}
}

// BenchmarkCode is the part of the table about code.
func BenchmarkCode(b *testing.B) {
	testenv.Need(b, testenv.Program("python3"), testenv.Program("go"))
	for _, r := range newBench(b).code() {
		b.Log(r)
	}
}
