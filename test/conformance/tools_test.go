//go:build linux

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

// toolbox is a set with tools of all kinds of value.
func toolbox() *broker.Set {
	s := testbox.Adders()
	broker.Add(s, "multiply", "Multiplies.", func(_ context.Context, in pair) (int, error) { return in.A * in.B, nil })
	broker.Add(s, "greet", "", func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "hello, " + in.Name, nil
	})
	broker.Add(s, "person", "", func(context.Context, struct{}) (map[string]any, error) {
		return map[string]any{"name": "Zoë", "tags": []string{"a"}, "of": map[string]any{"age": 7, "none": nil}}, nil
	})
	broker.Add(s, "numbers", "", func(context.Context, struct{}) ([]float64, error) { return []float64{1, 2.5, 3}, nil })
	broker.Add(s, "fail", "", func(context.Context, struct{}) (any, error) { return nil, errors.New("bad value") })
	broker.Add(s, "nothing", "", func(context.Context, struct{}) (any, error) { return nil, nil })
	broker.Add(s, "big", "", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return strings.Repeat("x", in.N), nil
	})
	s.AddRaw(broker.Tool{Name: "mirror", Schema: json.RawMessage(`{"type":"object","properties":{"v":{}}}`),
		Call: func(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) {
			var in struct{ V json.RawMessage }
			err := json.Unmarshal(arguments, &in)
			return in.V, err
		}})
	for _, ns := range []string{"db", "web"} {
		broker.Add(s, ns+".query", "", func(context.Context, struct{}) (string, error) { return ns, nil })
	}
	return s
}

// Code that calls tools.
func TestTools(t *testing.T) {
	eng := testbox.Open(t)
	for _, p := range []piece{
		{name: "codecell: a tool is in dir()", source: "'add' in dir() and callable(add)", value: "true"},
		{name: "codecell: bash calls tools", lang: "bash", source: "echo $(add 1 2)", stdout: "3\n"},
		{name: "codecell: a call", source: "print(add(3, b=4))", stdout: "7\n"},
		{name: "codecell: one calls with what another returned", source: "s = add(10, 20)\nprint(s, multiply(s, 3))",
			stdout: "30 90\n"},
		{name: "codecell: a string", source: "print(greet('Bob'))", stdout: "hello, Bob\n"},
		{name: "codecell: a dict", source: "person()", value: `{"name":"Zoë","of":{"age":7,"none":null},"tags":["a"]}`},
		{name: "codecell: a list", source: "sum(numbers())", value: "6.5"},
		{name: "codecell, chuk: a failure is a RuntimeError",
			source: "try:\n    fail()\nexcept RuntimeError as e:\n" +
				"    print(type(e).__name__, e)", stdout: "ToolError bad value\n"},
		{name: "codecell: calls in a loop", source: "[add(i, i) for i in range(5)]", value: "[0,2,4,6,8]"},
		{name: "codecell: there is what was given and nothing else", source: "sorted(tools)",
			value: `["add","big","db.query","fail","greet","mirror","multiply","nothing","numbers","person","web.query"]`},
		{name: "codecell: a description", source: "add.__doc__.splitlines()[0]", value: `"Adds two numbers."`},
		{name: "codecell: all the way", source: "print(add(100, 200))", stdout: "300\n"},
		{name: "codecell: tools by type and by schema", source: "[add(1, 2), add.__name__, mirror(v=[1]), mirror.__name__]",
			value: `[3,"add",[1],"mirror"]`},
		{name: "codecell: no description", source: "[greet('you'), 'hello' in (greet.__doc__ or '')]",
			value: `["hello, you",false]`},
		{name: "chuk: calls that are awaited",
			source: "total = 0\nfor i in range(1, 6):\n    total = await add(total, i)\nreturn total", value: "15"},
		{name: "chuk: a tool that returns nothing", source: "nothing() is None", value: "true"},
		{name: "chuk: values that JSON lacks", source: "import dataclasses, datetime\n@dataclasses.dataclass\nclass P:\n" +
			"    x: int\n    s: set\n{1: P(1, {3, 2}), 'd': datetime.date(2026, 1, 2), 'b': b'hi', 't': (1, [None])}",
			value: `{"1":{"x":1,"s":[2,3]},"d":"2026-01-02","b":"aGk=","t":[1,[null]]}`},
		{name: "chuk: and those that cannot be", source: "result = object()", outcome: engine.OutcomeExit, failed: "TypeError",
			stderr: "value of type object at result cannot be given to the host as JSON"},
		{name: "chuk: what goes round is the same",
			source: "v = {'é\\u2028\\0': [1, -1.5e300, True, None, {}, [], '', 'x' * 100_000]}\n" +
				"mirror(v) == v", value: "true"},
		{name: "chuk: messages that are too long", limits: engine.Limits{Frame: 64 * engine.KiB},
			source: "for f in lambda: mirror('x' * 70_000), lambda: big(70_000), lambda: big(60_000):\n    try:\n" +
				"        print(len(f()))\n    except ToolError as e:\n        print(e.type, e.code)\nadd(1, 1)",
			stdout: "too_large -32007\ntoo_large -32007\n60000\n", value: "2"},
		{name: "codecell: node, one calls with what another returned", lang: "node",
			source: "const s = await add(10, 20); console.log(s, await multiply(s, 3))", stdout: "30 90\n"},
		{name: "codecell: node, an object", lang: "node", source: "(await person()).of", value: `{"age":7,"none":null}`},
		{name: "codecell: node, a failure", lang: "node", source: "try { await fail() } catch (e) { console.log(e.name, e.message, e.type) }", stdout: "ToolError bad value tool_error\n"},
		{name: "codecell: node, calls in a loop", lang: "node",
			source: "await Promise.all([0, 1, 2, 3, 4].map(i => add(i, i)))", value: "[0,2,4,6,8]"},
		{name: "chuk: node, a return", lang: "node", source: "return add(1, 2)", value: "3"},
		{name: "codecell: sh, one calls with what another returned", lang: "sh",
			source: "s=$(add 10 b=20); echo $s $(multiply $s 3)", stdout: "30 90\n"},
		{name: "codecell: bash, a string", lang: "bash", source: "greet name=Bob", stdout: "hello, Bob\n"},
		{name: "codecell: sh, a failure", lang: "sh", source: "fail || echo status $?", stdout: "status 1\n",
			stderr: "fail: tool_error: bad value"},
		{name: "sh, one name in two namespaces", lang: "sh", source: "db_query; web_query", stdout: "db\nweb\n"},
		{name: "one name in two namespaces", source: "[db.query(), web.query(), tools['web.query']()]",
			value: `["db","web","web"]`},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			res := p.run(t, eng, toolbox())
			if p.name == "chuk: calls that are awaited" && (len(res.Code.ToolCalls) != 5 || res.Code.Tools["add"].Calls != 5) {
				t.Errorf("calls %+v", res.Code.Tools)
			}
		})
	}
	t.Run("codecell: sets that may be used", func(t *testing.T) {
		for _, s := range []*broker.Set{nil, new(broker.Set), toolbox()} {
			piece{source: "len(tools) in (0, 11)", value: "true"}.run(t, eng, s)
		}
		if tools := new(broker.Set).Tools(); len(tools) != 0 {
			t.Errorf("an empty set has %v", tools)
		}
	})
	t.Run("codecell, chuk: sets that may not", func(t *testing.T) {
		s := testbox.Adders()
		s.AddRaw(broker.Tool{Name: "no name", Call: func(context.Context, json.RawMessage) (json.RawMessage,
			error) {
			return nil, nil
		}})
		broker.Add(s, "add", "", func(context.Context, struct{}) (int, error) { return 0, nil })
		res, err := eng.RunCode(t.Context(), engine.Spec{Hostname: "?"}, piece{source: "1"}.code(), s)
		if !errors.Is(err, engine.ErrInvalid) || res != nil || strings.Contains(err.Error(), "hostname") {
			t.Fatalf("%+v, %v; want it refused before anything starts", res, err)
		}
		for _, want := range []string{`tool "no name": not a name`, `tool "add": added twice`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not say %s", err, want)
			}
		}
	})
	t.Run("codecell: a set lists its tools, which can be called", func(t *testing.T) {
		tools := toolbox().Tools()
		if len(tools) != 11 || tools[0].Name != "add" || tools[10].Name != "web.query" {
			t.Fatalf("%+v", tools)
		}
		v, err := tools[0].Call(t.Context(), json.RawMessage(`{"a":1,"b":2}`))
		if err != nil || string(v) != "3" {
			t.Errorf("%s, %v", v, err)
		}
	})
	t.Run("codecell: a tool that takes its time", func(t *testing.T) {
		s, answer := new(broker.Set), make(chan int)
		broker.Add(s, "later", "", func(ctx context.Context, _ struct{}) (int, error) {
			select {
			case v := <-answer:
				return v, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		go func() { answer <- 5 }()
		piece{source: "[later(), later.__doc__]", value: `[5,"A tool of the host."]`}.run(t, eng, s)
	})
}

// The Result has a record of the calls.
func TestRecord(t *testing.T) {
	eng := testbox.Open(t)
	t.Run("codecell: calls by id, with what they got and gave", func(t *testing.T) {
		// At once: the record of one run has no calls of the other.
		results := make(chan *engine.Result, 2)
		for range 2 {
			go func() {
				res, err := eng.RunCode(t.Context(), engine.Spec{}, piece{source: "greet('you'); add(1, 2)"}.code(), toolbox())
				if err != nil {
					t.Error(err)
				}
				results <- res
			}()
		}
		seen := make(map[string]bool)
		for range 2 {
			res := <-results
			if res == nil || len(res.Code.ToolCalls) != 2 {
				t.Fatalf("%+v", res)
			}
			for i, want := range []struct{ name, arguments, value string }{{"greet", `{"name":"you"}`, `"hello, you"`},
				{"add", `{"a":1,"b":2}`, "3"}} {
				c := res.Code.ToolCalls[i]
				if c.Run != res.Code.Run || !strings.HasPrefix(c.ID, res.Code.Run+".") || seen[c.ID] {
					t.Errorf("call %s of run %s in run %s", c.ID, c.Run, res.Code.Run)
				}
				seen[c.ID] = true
				if c.Name != want.name || string(c.Arguments) != want.arguments || string(c.Value) != want.value || c.Code != 0 ||
					c.Error != "" {
					t.Errorf("got %+v, want %v", c, want)
				}
				if c.Duration <= 0 || c.Started.IsZero() || c.Duration > res.Usage.Wall {
					t.Errorf("%v from %v, of %v", c.Duration, c.Started, res.Usage.Wall)
				}
			}
		}
	})
	t.Run("codecell: failures", func(t *testing.T) {
		res := piece{source: "for f in fail, lambda: add('x', 1):\n    try: f()\n    except ToolError: pass\nadd(1, 1)",
			value: "2"}.run(t, eng, toolbox())
		var got []string
		for _, c := range res.Code.ToolCalls {
			got = append(got, c.Name+" "+c.Code.String()+" "+c.Error)
		}
		if len(got) != 3 || got[0] != "fail tool_error bad value" ||
			!strings.HasPrefix(got[1], "add invalid_params arguments of add") || got[2] != "add code 0 " {
			t.Errorf("%q", got)
		}
		if u := res.Code.Tools["fail"]; u.Calls != 1 || u.Failed != 1 || res.Code.Tools["add"].Calls != 1 {
			t.Errorf("%+v", res.Code.Tools)
		}
	})
	t.Run("codecell: no calls", func(t *testing.T) {
		res := piece{source: "1"}.run(t, eng, toolbox())
		if len(res.Code.ToolCalls) != 0 || len(res.Code.Tools) != 0 || res.Code.Run == "" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("chuk: a log that says what happens", func(t *testing.T) {
		var log strings.Builder // written to by one call, which is over
		s := testbox.Adders()
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		res := piece{source: "add(1, 2)", value: "3"}.run(t, eng, s)
		for _, want := range []string{"tool call", "run=" + res.Code.Run, "tool=add", "duration="} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%q is not in %s", want, log.String())
			}
		}
	})
}

// Code meets the policy for tools.
func TestPolicy(t *testing.T) {
	eng := testbox.Open(t)
	t.Run("chuk: a ceiling", func(t *testing.T) {
		res := piece{source: "for i in range(5): add(i, i)", limits: engine.Limits{ToolCalls: 2}, outcome: engine.OutcomeToolCalls,
			failed: "ToolError", stderr: "ToolError"}.run(t, eng, toolbox())
		if res.Code.Tools["add"].Calls != 2 {
			t.Errorf("%+v", res.Code.Tools)
		}
	})
	t.Run("chuk: three at once are three", func(t *testing.T) {
		res := piece{source: "import asyncio\nawait asyncio.gather(add(1, 1), add(2, 2), add(3, 3))",
			limits: engine.Limits{ToolCalls: 3}, value: "[2,4,6]"}.run(t, eng, toolbox())
		if res.Code.Tools["add"].Calls != 3 || len(res.Code.ToolCalls) != 3 {
			t.Errorf("%+v", res.Code.Tools)
		}
	})
	t.Run("chuk: what is not allowed has no name", func(t *testing.T) {
		s := toolbox()
		s.Allow = []string{"greet", "db.query"}
		piece{source: "add(1, 2)", outcome: engine.OutcomeExit, failed: "NameError", stderr: "name 'add' is not defined"}.run(t,
			eng, s)
		piece{source: "[greet('a'), db.query(), sorted(tools)]", value: `["hello, a","db",["db.query","greet"]]`}.run(t,
			eng, s)
	})
	t.Run("chuk: the pinned namespace", func(t *testing.T) {
		s := toolbox()
		s.Namespace = "web"
		piece{source: "[query(), sorted(tools)]", value: `["web",["web.query"]]`}.run(t, eng, s)
	})
	t.Run("many at once, and one that is not wanted any more", func(t *testing.T) {
		s, ended := toolbox(), make(chan error, 1)
		broker.Add(s, "never", "", func(ctx context.Context, _ struct{}) (int, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return 0, ctx.Err()
		})
		res := piece{value: "[0,2,4,6,8,10,12,14,16,18]", stdout: "given up\n", source: `
import asyncio
try: await asyncio.wait_for(never(), 0.1)
except asyncio.TimeoutError: print("given up")
await asyncio.gather(*[add(i, i) for i in range(10)])`}.run(t, eng, s)
		toolCanceled(t, ended)
		if i := slices.IndexFunc(res.Code.ToolCalls,
			func(r broker.Record) bool { return r.Code == broker.CodeCanceled }); i < 0 || res.Code.ToolCalls[i].Name != "never" {
			t.Errorf("%+v", res.Code.ToolCalls)
		}
	})
}
