package bootstrap_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/bootstrap"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// nodeHost plays the host for one guest.
type nodeHost struct {
	conn    net.Conn
	cmd     *exec.Cmd
	writing sync.Mutex
	waiting []any // ids of calls of meet
	next    []nodeObject

	results []nodeObject
	cancels []any
	calls   []nodeObject
	out     bytes.Buffer
	errs    bytes.Buffer
}

type nodeObject = map[string]any

// nodeTools are the tools of every run here. meet answers when it has been
// called three times; hang never does; hangup ends the connection.
const nodeTools = `[
	{"name": "add", "description": "adds", "schema": {"type": "object", "properties": {"a": {}, "b": {}}}},
	{"name": "query", "namespace": "db", "schema": {"type": "object", "properties": {"q": {}}}},
	{"name": "query", "namespace": "web", "schema": {"type": "object", "properties": {"q": {}}}},
	{"name": "echo", "schema": {"type": "object", "properties": {"v": {}}}},
	{"name": "bytes", "schema": {"type": "object"}, "output": {"type": ["null", "string"], "contentEncoding": "base64"}},
	{"name": "fail", "schema": {"type": "object"}},
	{"name": "steps", "schema": {"type": "object"}},
	{"name": "meet", "schema": {"type": "object"}},
	{"name": "kebab-case", "schema": {"type": "object"}},
	{"name": "hang", "schema": {"type": "object"}},
	{"name": "hangup", "schema": {"type": "object"}},
	{"name": "kill", "schema": {"type": "object"}}
]`

// nodeRun runs jobs in one guest, all but the first after the result of the one
// before, and returns when it has ended. The hello of a guest for nil is refused.
func nodeRun(t *testing.T, args []string, jobs ...nodeObject) *nodeHost {
	t.Helper()
	testenv.Need(t, testenv.Program("node"))
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	h := &nodeHost{next: jobs}
	if h.conn, err = net.FileConn(ours); err != nil {
		t.Fatal(err)
	}
	defer h.conn.Close()
	ours.Close()
	launch := bootstrap.Node(args)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h.cmd = exec.CommandContext(ctx, launch.Argv[0], launch.Argv[1:]...)
	h.cmd.Env = append(append(os.Environ(), "TEGMEN_FD=3", "TEGMEN_TOKEN=secret"), launch.Env...)
	h.cmd.ExtraFiles = []*os.File{theirs}
	h.cmd.Dir = t.TempDir()
	h.cmd.Stdout, h.cmd.Stderr = &h.out, &h.errs
	if err := os.WriteFile(h.cmd.Dir+"/local.mjs", []byte("export default 'local'; export const other = 2;"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.serve(t)
	}()
	var exit *exec.ExitError
	if err := h.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Errorf("node did not end; stderr: %s", h.errs.String())
	}
	<-served
	return h
}

func (h *nodeHost) serve(t *testing.T) {
	for lines := bufio.NewReader(h.conn); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // it has ended
		}
		var m struct {
			ID     any
			Method string
			Params nodeObject
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber() // a BigInt has more digits
		if err := d.Decode(&m); err != nil {
			t.Errorf("%v: %.200s", err, line)
			return
		}
		switch m.Method {
		case "hello":
			if m.Params["token"] != "secret" || m.Params["protocol"] != json.Number("1") {
				t.Errorf("hello %v", m.Params)
			}
			if h.next[0] == nil {
				h.send(nodeObject{"id": m.ID, "error": nodeObject{"code": -32001, "message": "unauthorized", "data": nodeObject{"type": "unauthorized"}}})
			} else {
				h.answer(m.ID, h.job())
			}
		case "tools/call":
			h.calls = append(h.calls, m.Params)
			h.call(m.ID, m.Params)
		case "cancel":
			h.cancels = append(h.cancels, m.Params["id"])
		case "result":
			h.results = append(h.results, m.Params)
			h.answer(m.ID, nodeObject{})
			if len(h.next) > 0 {
				h.send(nodeObject{"method": "run", "params": h.job()})
			} else if m.Params["run"] == "stateful" {
				h.conn.(*net.UnixConn).CloseWrite()
			}
		default:
			t.Errorf("method %q", m.Method)
		}
	}
}

func (h *nodeHost) job() nodeObject {
	job := nodeObject{"protocol": 1, "run": "once", "tools": json.RawMessage(nodeTools), "limits": nodeObject{"frame": 1 << 20}, "language": "node"}
	for k, v := range h.next[0] {
		job[k] = v
	}
	if job["stateful"] == true {
		job["run"] = "stateful"
	}
	h.next = h.next[1:]
	return job
}

func (h *nodeHost) call(id any, params nodeObject) {
	arguments, _ := params["arguments"].(nodeObject)
	value := func(v any) { h.answer(id, nodeObject{"value": v}) }
	switch params["name"] {
	case "add":
		sum := int64(0)
		for _, v := range arguments {
			number, _ := v.(json.Number)
			n, _ := number.Int64()
			sum += n
		}
		value(sum)
	case "echo":
		value(arguments["v"])
	case "query":
		value(fmt.Sprint(params["namespace"], ": ", arguments["q"]))
	case "bytes":
		value([]byte{0, 255})
	case "fail":
		h.send(nodeObject{"id": id, "error": nodeObject{"code": -32000, "message": "no such row", "data": nodeObject{"type": "missing", "details": nodeObject{"id": 7}}}})
	case "steps":
		for i := range 3 {
			h.send(nodeObject{"method": "progress", "params": nodeObject{"id": id, "value": i}})
		}
		value(params["progress"])
	case "meet":
		if h.waiting = append(h.waiting, id); len(h.waiting) == 3 {
			for i, id := range slices.Backward(h.waiting) {
				h.answer(id, nodeObject{"value": i})
			}
		}
	case "hang":
	case "hangup":
		h.conn.Close()
	case "kill":
		_ = h.cmd.Process.Kill() // if it has ended, the test will tell
	default:
		value(params["name"])
	}
}

func (h *nodeHost) answer(id any, result nodeObject) { h.send(nodeObject{"id": id, "result": result}) }

func (h *nodeHost) send(m nodeObject) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	_, _ = h.conn.Write(append(line, '\n')) // the guest may have ended
}

// nodeValue is the value of a result as JSON, "none" without one, and for an
// error its type and message.
func nodeValue(result nodeObject) string {
	if failure, ok := result["error"].(nodeObject); ok {
		return fmt.Sprintf("%v: %v", failure["type"], failure["message"])
	}
	v, ok := result["value"]
	if !ok {
		return "none"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was decoded
	return strings.TrimSpace(b.String())
}

// Values: what a piece of code returns, and its exit status, which is 1 where
// that is an error, else 0.
func TestNodeValues(t *testing.T) {
	testenv.NoRace(t)
	for _, tt := range []struct{ name, code, want string }{
		{"expression", "1 + 1", "2"},
		{"no expression", "const a = 1", "none"},
		{"empty", "", "none"},
		{"comment", "// nothing", "none"},
		{"a call that returns nothing", "console.log(1)", "null"},
		{"last of several lines", "const a = 1\nconst b = 2 // two\na + b", "3"},
		{"last after a comment", "const a = 1;\n\n// this is it: `a`\na;\n", "1"},
		{"last over several lines", "Math.max(\n  1,\n  2,\n)", "2"},
		{"last in the same line", "const a = 1; a", "1"},
		{"last in parentheses", "const a = 1;\n(a, 2);", "2"},
		{"an object", "({ a: 1 })", `{"a":1}`},
		{"goes on in the next line", "const a = [1, 2]\nconst b = a\n[0]", "none"},
		{"ends in a block", "let a = 1\nif (a) {\n  a\n}", "none"},
		{"in a template", "const a = `\nMath\n`", "none"},
		{"in a comment", "1; /*\nMath */", "1"},
		{"function", "1\nfunction f() { return 1 }", "none"},
		{"class", "1\nclass A {}", "none"},
		{"after a declaration in its line", "const a = 1; a + 1", "2"},
		{"after a block in its line", "if (true) { 1 } 2", "2"},
		{"after a loop, not in the first column", "for (const a of [1]) {\n}\n  3", "3"},
		{"if and else", "if (false) 1; else 2", "none"},
		{"return of an object", "return {\n  a: 1,\n}", `{"a":1}`},
		{"else", "if (false) 1\nelse 2", "none"},
		{"while", "do 1\nwhile (false)", "none"},
		{"in", "const o = 1\nin { 1: 1 }", "none"},
		{"async function", "async function f() { return 1 }", "none"},
		{"a promise", "Promise.resolve(3)", "3"},
		{"return", "if (true) return 1\nfoo()", "1"},
		{"return nothing", "return", "null"},
		{"return over result", "const result = 1; return 2", "2"},
		{"result over last", "const result = 1\n2", "1"},
		{"result undeclared", "result = null", "null"},
		{"__result__", "__result__ = 4; 5", "4"},
		{"result in a function", "function f() { const result = 1 }\nf()", "null"},
		{"result not reached", "if (true) return 5\nconst result = 1", "5"},
		{"template keeps its lines", "const a = `x\n  y`\na", `"x\n  y"`},
		{"hashbang", "#!/usr/bin/env node\n1", "1"},
		{"await", "await null; 1", "1"},
		{"strict", "(function () { return this })() === undefined", "true"},
		{"import", "import fs, { readFileSync as r } from 'node:fs'\nimport * as p from 'path'\nfs.readFileSync === r && p.sep", `"/"`},
		{"import is hoisted", "const a = sep\nimport { sep } from 'path'\na", `"/"`},
		{"import of a file", "import local, { other } from './local.mjs'\n[local, other]", `["local",2]`},
		{"import()", "const { default: d } = await import('./local.mjs')\nd", `"local"`},
		{"import.meta", "import.meta.url.startsWith('file:///')", "true"},
		{"import of nothing", "import { nope } from 'fs'", "SyntaxError: The requested module 'fs' does not provide an export named 'nope'"},
		{"export", "export const a = 1\nexport { a as b }\na", "1"},
		{"export default", "export default { a: 1 };", `{"a":1}`},
		{"require", "require('path').sep", `"/"`},
		{"standard types", "[new Date(0), Buffer.from('hi'), new Uint8Array([1]).buffer, new Map([['k', new Set([1])]]), new Float64Array([1.5])]", `["1970-01-01T00:00:00.000Z","aGk=","AQ==",{"k":[1]},[1.5]]`},
		{"numbers", "[12345678901234567890123n, 5n, -0, 1e300]", "[12345678901234567890123,5,0,1e+300]"},
		{"undefined", "[{ a: undefined }, [undefined]]", "[{},[null]]"},
		{"toJSON", "({ toJSON: (key) => 'k' + key })", `"k"`},
		{"strings", `"\u2028\"\ud83d\ude00"`, `"\u2028\"😀"`},
		{"function", "({ a: [() => 1] })", "TypeError: value of type function at result.a[0] cannot be given to the host as JSON"},
		{"symbol", "({ 'a b': Symbol() })", `TypeError: value of type symbol at result["a b"] cannot be given to the host as JSON`},
		{"NaN", "[NaN]", "TypeError: NaN at result[0] cannot be given to the host as JSON"},
		{"cycle", "const o = {}; o.o = o; o", "TypeError: a cycle at result.o cannot be given to the host as JSON"},
		{"twice the same", "const o = {}; [o, o]", "[{},{}]"},
		{"promise within", "[Promise.resolve(1)]", "TypeError: a Promise that was not awaited at result[0] cannot be given to the host as JSON"},
		{"too large", "'x'.repeat(2 << 20)", "too_large: message of 2097229 bytes exceeds the limit of 1048576"},
		{"throw", "throw new RangeError('no')", "RangeError: no"},
		{"throw no error", "throw 'no'", "String: 'no'"},
		{"syntax", "let a = 1\nif (a) {", "SyntaxError: Unexpected end of input"},
		{"unhandled rejection", "Promise.reject(new Error('no')); await new Promise((r) => setTimeout(r, 60000))", "Error: no"},
		{"thrown later", "setImmediate(() => { throw new Error('no') }); await new Promise((r) => setTimeout(r, 60000))", "Error: no"},
		{"handled", "process.on('uncaughtException', () => go(1)); let go; const p = new Promise((r) => { go = r }); setImmediate(() => { throw 1 }); await p", "1"},
		{"argv", "process.argv.slice(2)", `["a","b c"]`},
		{"environment", "Object.keys(process.env).filter((k) => k === 'TEGMEN_FD' || k === 'TEGMEN_TOKEN').concat(process.execArgv)", "[]"},
		{"child has no channel", "const { spawnSync } = require('child_process')\nspawnSync(process.execPath, ['-p', 'require(\"fs\").writeSync(3, \"x\")'], { stdio: 'pipe' }).status !== 0", "true"},
		{"stack", "function f() { return new Error('x').stack }\nf()", `"Error: x\n    at f (<code>:1:23)\n    at <code>:2:1"`},
		{"stack after await", "await null\nnew Error('x').stack", `"Error: x\n    at <code>:2:1"`},
		{"variables", "[v, w.a]", "[1,[2]]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := nodeRun(t, []string{"a", "b c"}, nodeObject{"code": tt.code, "vars": nodeObject{"v": 1, "w": nodeObject{"a": []int{2}}}})
			if len(h.results) != 1 {
				t.Fatalf("%d results; stderr: %s", len(h.results), h.errs.String())
			}
			if got := nodeValue(h.results[0]); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			failed := h.results[0]["error"] != nil
			if got := h.cmd.ProcessState.ExitCode(); got != map[bool]int{true: 1}[failed] {
				t.Errorf("exit status %d", got)
			}
			if (h.errs.Len() > 0) != failed {
				t.Errorf("stderr: %q", h.errs.String())
			}
		})
	}
}

func TestNodeTools(t *testing.T) {
	testenv.NoRace(t)
	for _, tt := range []struct{ name, code, want string }{
		{"named", "await add({ a: 1, b: 2 })", "3"},
		{"positional", "await add(1, 2)", "3"},
		{"one that is no plain object", "await echo([1])", "[1]"},
		{"too many", "await echo(1, 2)", "TypeError: echo takes at most 1 argument, 2 given"},
		{"namespaces", "[await db.query('x'), await web.query({ q: 'y' })]", `["db: x","web: y"]`},
		{"no bare name of a namespace", "typeof query", `"undefined"`},
		{"by exact name", "[await tools['db.query'](1), Object.getPrototypeOf(tools), 'toString' in tools]", `["db: 1",null,false]`},
		{"a dash", "kebab_case === tools['kebab-case'] && await kebab_case()", `"kebab-case"`},
		{"what it is", "[add.name, add.description, add.schema.type]", `["add","adds","object"]`},
		{"shadowed", "const add = (a) => a; add(5)", "5"},
		{"bytes", "const b = await bytes(); [Buffer.isBuffer(b), ...b]", "[true,0,255]"},
		{"concurrent", "(await Promise.all([meet(), meet(), meet()])).join()", `"0,1,2"`},
		{"progress", "const seen = []; [await steps.call({}, { progress: (v) => seen.push(v) }), seen]", "[true,[0,1,2]]"},
		{"failure", "try { await fail() } catch (e) { return [e instanceof ToolError, e instanceof Error, e.name, e.type, e.code, e.message, e.details] }", `[true,true,"ToolError","missing",-32000,"no such row",{"id":7}]`},
		{"failure uncaught", "await fail()", "ToolError: no such row"},
		{"arguments", "await echo({ v: { b: new Uint8Array([255]), d: new Date(0), u: undefined } })", `{"b":"/w==","d":"1970-01-01T00:00:00.000Z"}`},
		{"no JSON", "await echo([1, () => 1])", "TypeError: value of type function at arguments.v[1] cannot be given to the host as JSON"},
		{"too large", "try { await echo('x'.repeat(2 << 20)) } catch (e) { return [e.type, e.code] }", `["too_large",-32007]`},
		{"large", "(await echo('ü'.repeat(500000))).length", "500000"},
		{"many large", "(await Promise.all(Array.from({ length: 30 }, () => echo('x'.repeat(1e6))))).join('').length", "30000000"},
		{"abort", "const c = new AbortController(); const p = hang.call({}, { signal: c.signal }); await add(1, 1); c.abort(); try { await p } catch (e) { return e.name }", `"AbortError"`},
		{"host gone", "try { await hangup() } catch (e) { try { await add(1, 2) } catch (f) { console.log(e.type, e.message, f.type) } }", "gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := nodeRun(t, nil, nodeObject{"code": tt.code})
			if tt.want == "gone" {
				if got, want := h.out.String(), "canceled the host closed the connection canceled\n"; got != want {
					t.Errorf("printed %q, want %q; stderr: %s", got, want, h.errs.String())
				}
				return
			}
			if len(h.results) != 1 {
				t.Fatalf("%d results; stderr: %s", len(h.results), h.errs.String())
			}
			if got := nodeValue(h.results[0]); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if want := strings.Count(tt.code, "c.abort()"); len(h.cancels) != want {
				t.Errorf("%d cancellations, want %d", len(h.cancels), want)
			}
		})
	}
}
