package wire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// dialogue is a guest's end of a link, spoken to in raw lines.
type dialogue struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	link *wire.Link
	run  *wire.Run
}

// talk starts a run and says hello.
func talk(t testing.TB, s *broker.Set, l broker.Limits) *dialogue {
	t.Helper()
	d := dial(t, s, l, wire.Job{})
	d.hello()
	return d
}

func dial(t testing.TB, s *broker.Set, l broker.Limits, j wire.Job) *dialogue {
	t.Helper()
	host, guest := net.Pipe()
	link := wire.NewLink(host, l)
	run, err := link.Start(t.Context(), s, j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = guest.Close()
		_ = link.Close()
		run.End()
	})
	return &dialogue{t: t, conn: guest, in: bufio.NewReaderSize(guest, 1<<16), link: link, run: run}
}

func (d *dialogue) hello() reply {
	d.t.Helper()
	d.send(`{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"token":%q}}`, d.link.Token())
	return d.must()
}

func (d *dialogue) send(format string, args ...any) {
	d.t.Helper()
	_ = d.conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
	if _, err := fmt.Fprintf(d.conn, format+"\n", args...); err != nil {
		d.t.Fatalf("send: %v", err)
	}
}

type reply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    broker.Code
		Message string
		Data    struct {
			Type    string
			Details json.RawMessage
		}
	} `json:"error"`
}

// read returns the next line; io.EOF when the host has hung up.
func (d *dialogue) read() (r reply, err error) {
	_ = d.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	line, err := d.in.ReadBytes('\n')
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(line, &r)
}

func (d *dialogue) must() reply {
	d.t.Helper()
	r, err := d.read()
	if err != nil {
		d.t.Fatalf("read: %v", err)
	}
	return r
}

// ask sends a request and returns its answer, in which code is 0 for a result.
func (d *dialogue) ask(method, params string) reply {
	d.t.Helper()
	go d.send(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	return d.must()
}

func (r reply) code() broker.Code {
	if r.Error == nil {
		return 0
	}
	return r.Error.Code
}

func (d *dialogue) refused(r reply, want broker.Code, text string) {
	d.t.Helper()
	if r.code() != want || r.Error != nil && !strings.Contains(r.Error.Message, text) {
		d.t.Errorf("got %d %+v, want %d %s with %q", r.code(), r.Error, want, want, text)
	}
}

type sum struct {
	A int `json:"a" jsonschema:"the first"`
	B int `json:"b,omitempty"`
}

// sample is a set with a tool of each kind.
func sample() *broker.Set {
	s := new(broker.Set)
	broker.Add(s, "add", "adds two numbers", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil })
	broker.Add(s, "db.query", "asks", func(_ context.Context, in struct {
		SQL string `json:"sql"`
	}) (string, error) {
		return "db:" + in.SQL, nil
	})
	broker.Add(s, "log.query", "asks another", func(_ context.Context, in struct {
		SQL string `json:"sql"`
	}) (string, error) {
		return "log:" + in.SQL, nil
	})
	broker.Add(s, "fail", "fails", func(_ context.Context, in struct {
		Type string `json:"type,omitempty"`
	}) (any, error) {
		if in.Type != "" {
			return nil, fmt.Errorf("it says: %w", &broker.Error{Type: in.Type, Message: "no", Data: map[string]int{"left": 3}})
		}
		return nil, errors.New("out of luck")
	})
	broker.Add(s, "panic", "panics", func(context.Context, struct{}) (any, error) { panic("secret") })
	broker.Add(s, "goexit", "ends its goroutine", func(context.Context, struct{}) (any, error) { runtime.Goexit(); return nil, nil })
	broker.Add(s, "wait", "waits until it is canceled", func(ctx context.Context, _ struct{}) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	broker.Add(s, "bytes", "turns bytes round", func(_ context.Context, in struct {
		Data []byte `json:"data"`
	}) ([]byte, error) {
		for i, j := 0, len(in.Data)-1; i < j; i, j = i+1, j-1 {
			in.Data[i], in.Data[j] = in.Data[j], in.Data[i]
		}
		return in.Data, nil
	})
	broker.Add(s, "big", "returns much", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return strings.Repeat("x", in.N), nil
	})
	broker.Add(s, "steps", "reports", func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			if err := broker.Progress(ctx, i); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	s.AddRaw(broker.Tool{Name: "garbage", Call: func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage("{"), nil
	}})
	s.AddRaw(broker.Tool{Name: "pretty", Call: func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage("{\n  \"a\": [1,\n 2]\n}"), nil
	}})
	s.AddRaw(broker.Tool{Name: "late", Timeout: time.Millisecond, Call: func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	return s
}

// Every request with what it is answered. The codes that are missing here are
// in tests of their own.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, method, params string
		code                 broker.Code
		want                 string // the result, or a part of the message
	}{
		{"a call", "tools/call", `{"name":"add","arguments":{"a":1,"b":2}}`, 0, `{"value":3}`},
		{"an optional argument", "tools/call", `{"name":"add","arguments":{"a":1}}`, 0, `{"value":1}`},
		{"a namespace", "tools/call", `{"name":"query","namespace":"db","arguments":{"sql":"x"}}`, 0, `{"value":"db:x"}`},
		{"the same name in another", "tools/call", `{"name":"query","namespace":"log","arguments":{"sql":"x"}}`, 0, `{"value":"log:x"}`},
		{"a qualified name", "tools/call", `{"name":"db.query","arguments":{"sql":"x"}}`, 0, `{"value":"db:x"}`},
		{"bytes", "tools/call", `{"name":"bytes","arguments":{"data":"AQID"}}`, 0, `{"value":"AwIB"}`},
		{"JSON on many lines", "tools/call", `{"name":"pretty"}`, 0, `{"value":{"a":[1,2]}}`},
		{"progress that nobody asked for", "tools/call", `{"name":"steps"}`, 0, `{"value":"done"}`},
		{"a bare name of a namespace", "tools/call", `{"name":"query","arguments":{"sql":"x"}}`, broker.CodeNotFound, `no tool "query"`},
		{"no such tool", "tools/call", `{"name":"sub"}`, broker.CodeNotFound, `no tool "sub"`},
		{"a missing argument", "tools/call", `{"name":"add","arguments":{"b":2}}`, broker.CodeParams, "arguments of add: "},
		{"one of another type", "tools/call", `{"name":"add","arguments":{"a":"1"}}`, broker.CodeParams, "arguments of add: "},
		{"an integer, as a quotient is written", "tools/call", `{"name":"add","arguments":{"a":4.0}}`, 0, `{"value":4}`},
		{"a fraction", "tools/call", `{"name":"add","arguments":{"a":1.5}}`, broker.CodeParams, "arguments of add: "},
		{"one too many", "tools/call", `{"name":"add","arguments":{"a":1,"c":2}}`, broker.CodeParams, `unexpected additional properties ["c"]; it takes a, b`},
		{"chuk: an array", "tools/call", `{"name":"add","arguments":[1,2]}`, broker.CodeParams, "tool arguments must be an object"},
		{"chuk: a name that is none", "tools/call", `{"name":7}`, broker.CodeParams, "requires a string name"},
		{"no name", "tools/call", `{}`, broker.CodeParams, "requires a string name"},
		{"chuk: a namespace that is none", "tools/call", `{"name":"query","namespace":7}`, broker.CodeParams, "namespace must be a string"},
		{"params that are none", "tools/call", `[1]`, broker.CodeParams, "params must be an object"},
		{"chuk: a tool that fails", "tools/call", `{"name":"fail"}`, broker.CodeTool, "out of luck"},
		{"a tool that panics", "tools/call", `{"name":"panic"}`, broker.CodeInternal, "tool panic panicked"},
		{"a tool that ends its goroutine", "tools/call", `{"name":"goexit"}`, broker.CodeInternal, "goexit called runtime.Goexit"},
		{"a tool that returns garbage", "tools/call", `{"name":"garbage"}`, broker.CodeInternal, "garbage returned invalid JSON"},
		{"a tool that is late", "tools/call", `{"name":"late"}`, broker.CodeTimeout, "late: timed out"},
		{"a value that is too large", "tools/call", `{"name":"big","arguments":{"n":70000}}`, broker.CodeTooLarge, "the value of big takes 70002 bytes"},
		{"chuk: another method", "tools/steal", `{}`, broker.CodeMethod, "unknown method: tools/steal"},
		{"hello again", "hello", `{}`, broker.CodeInvalidRequest, "hello was already sent"},
		{"a result", "result", `{"value":{"a":[1,2]}}`, 0, `{}`},
		{"the result of another run", "result", `{"run":"r_0","value":1}`, broker.CodeCompleted, "result of another run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := talk(t, sample(), broker.Limits{Frame: 64 << 10})
			r := d.ask(c.method, c.params)
			if c.code != 0 {
				d.refused(r, c.code, c.want)
				if r.Error != nil && r.Error.Data.Type != c.code.String() {
					t.Errorf("data.type is %q, want %q", r.Error.Data.Type, c.code)
				}
				return
			}
			if string(r.Result) != c.want || r.Error != nil || string(r.ID) != "1" {
				t.Errorf("got %s, %+v for id %s, want %s", r.Result, r.Error, r.ID, c.want)
			}
		})
	}
}

// A tool says itself what kind of error it is.
func TestErrorsOfTheirOwn(t *testing.T) {
	d := talk(t, sample(), broker.Limits{})
	r := d.ask("tools/call", `{"name":"fail","arguments":{"type":"NotEnough"}}`)
	d.refused(r, broker.CodeTool, "it says: no")
	if r.Error.Data.Type != "NotEnough" || string(r.Error.Data.Details) != `{"left":3}` {
		t.Errorf("got %+v", r.Error.Data)
	}
}

func TestHello(t *testing.T) {
	for _, c := range []struct {
		name, line string
		code       broker.Code
		want       string
	}{
		{"chuk: a wrong token", `{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"token":"0"}}`, broker.CodeUnauthorized, "unauthorized"},
		{"no token", `{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1}}`, broker.CodeUnauthorized, "unauthorized"},
		{"a later protocol", `{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":2,"token":"TOKEN"}}`, broker.CodeProtocol, "protocol 2"},
		{"a call before it", `{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}`, broker.CodeUnauthorized, "expected hello"},
		{"a result before it", `{"jsonrpc":"2.0","id":0,"method":"result","params":{"value":1}}`, broker.CodeUnauthorized, "expected hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := dial(t, sample(), broker.Limits{}, wire.Job{})
			d.send("%s", strings.Replace(c.line, "TOKEN", d.link.Token(), 1))
			d.refused(d.must(), c.code, c.want)
			if _, err := d.read(); !errors.Is(err, io.EOF) {
				t.Errorf("then %v, want the end", err)
			}
			if rep := d.run.End(); rep.Greeted || rep.Value != nil || len(rep.Calls) > 0 {
				t.Errorf("report %+v", rep)
			}
		})
	}
}

// What a guest is given to do.
func TestJob(t *testing.T) {
	d := dial(t, sample(), broker.Limits{Frame: 1 << 20}, wire.Job{Language: "python", Code: "x\n", Vars: map[string]json.RawMessage{"a": json.RawMessage("[1]")}, Args: []string{"b"}})
	var job struct {
		Protocol       int
		Run            string
		Tools          []struct{ Name, Namespace, Description string }
		Limits         struct{ Frame int }
		Language, Code string
		Vars           map[string][]int
		Args           []string
	}
	if err := json.Unmarshal(d.hello().Result, &job); err != nil {
		t.Fatal(err)
	}
	if job.Protocol != 1 || job.Run != d.run.End().Run || job.Limits.Frame != 1<<20 || job.Language != "python" || job.Code != "x\n" || job.Vars["a"][0] != 1 || job.Args[0] != "b" {
		t.Errorf("got %+v", job)
	}
	if len(job.Tools) < 3 || job.Tools[0].Name != "add" || job.Tools[0].Description != "adds two numbers" || job.Tools[1].Namespace != "db" {
		t.Errorf("got tools %+v", job.Tools)
	}
}

// A guest that knows its tools is spared reading of them, but may ask.
func TestBriefJob(t *testing.T) {
	d := dial(t, sample(), broker.Limits{}, wire.Job{Brief: true})
	if got := string(d.hello().Result); !strings.Contains(got, `"tools":[],`) {
		t.Errorf("hello: %s", got)
	}
	if got := string(d.ask("tools/list", `{}`).Result); !strings.Contains(got, `"name":"add"`) {
		t.Errorf("tools/list: %s", got)
	}
}

// A guest that says nothing is not waited for.
func TestHandshakeDeadline(t *testing.T) {
	d := dial(t, nil, broker.Limits{Handshake: time.Millisecond}, wire.Job{})
	if _, err := d.read(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
	<-d.run.Done()
}

// Calls are served at once, up to the bound, and answered as they are done.
func TestConcurrentCalls(t *testing.T) {
	const atOnce = 4
	var mu sync.Mutex
	var now, most int
	all := make(chan struct{})
	s := new(broker.Set)
	broker.Add(s, "meet", "waits for the others", func(ctx context.Context, _ struct{}) (bool, error) {
		mu.Lock()
		now++
		most = max(most, now)
		if now == atOnce {
			close(all)
		}
		mu.Unlock()
		<-all
		mu.Lock()
		defer mu.Unlock()
		now--
		return true, nil
	})
	d := talk(t, s, broker.Limits{AtOnce: atOnce})
	go func() {
		for i := range atOnce {
			d.send(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"meet"}}`, i)
		}
	}()
	for range atOnce {
		if r := d.must(); r.code() != 0 {
			t.Fatalf("got %+v", r.Error)
		}
	}
	rep := d.run.End()
	if most != atOnce || rep.Accepted != atOnce || rep.Tools["meet"].Calls != atOnce {
		t.Errorf("%d at once, report %+v; want %d", most, rep, atOnce)
	}
}
