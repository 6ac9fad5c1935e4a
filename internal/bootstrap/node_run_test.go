package bootstrap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// What a run prints and how it ends. want is its value, or "none sent".
func TestNodeEnds(t *testing.T) {
	testenv.NoRace(t)
	for _, tt := range []struct {
		name, code string
		status     int
		want       string
		out, errs  string
	}{
		{"exit", "result = 1; process.exit(3)", 3, "none sent", "", ""},
		{"exit code", "process.exitCode = 4; 1", 4, "1", "", ""},
		{"exit 0", "process.exit(0)", 0, "none sent", "", ""},
		{"exit 0 with a result", "result = 1; process.exit(0)", 0, "1", "", ""},
		{"timers go on", "setTimeout(() => console.log('late')); 1", 0, "1", "late\n", ""},
		{"fails after its top level", "setImmediate(() => { throw new Error('late') }); 1", 1, "Error: late", "",
			"<code>:1\nsetImmediate(() => { throw new Error('late') }); 1\n                           ^\n\nError: late\n    at Immediate.<anonymous> (<code>:1:28)\n\nNode.js *\n"},
		{"never ends", "await new Promise(() => {})", 13, "UnsettledAwait: top-level await can never settle", "",
			"top-level await can never settle\n"},
		{"calls of a main not waited for", "async function main() { console.log(await add(1, 2)); console.log(await add(3, 4)) }\nmain(); console.log('started'); 5", 0, "5", "started\n3\n7\n", ""},
		{"calls of a loop not waited for", "[1, 2].forEach(async (i) => { await add(i, 0); console.log(await add(i, 9)) }); 0", 0, "0", "10\n11\n", ""},
		{"calls with then", "add(1, 2).then((v) => console.log(v)); 0", 0, "0", "3\n", ""},
		{"calls by timers", "setTimeout(async () => { await add(1, 1); setTimeout(async () => console.log(await add(1, 2)), 1) }, 1); 5", 0, "5", "3\n", ""},
		{"calls before an exit", "process.on('beforeExit', async () => { if (!once) { once = 1; console.log(await add(1, 2)) } }); globalThis.once = 0; 5", 0, "5", "3\n", ""},
		{"calls not waited for fail", "fail(); 5", 1, "ToolError: no such row", "",
			"<code>:1\nfail(); 5\n^\n\nToolError: no such row\n    at <code>:1:1 {\n  type: 'missing',\n  code: -32000,\n  details: { id: 7 }\n}\n\nNode.js *\n"},
		{"the value is that of the top level", "const o = { a: 1 }; setImmediate(() => { o.a = 2; result = 3 }); o", 0, `{"a":1}`, "", ""},
		{"exit 0 later", "hang(); setImmediate(() => process.exit(0)); 1", 0, "1", "", ""},
		{"exit later", "hang(); setImmediate(() => process.exit()); process.exitCode = 3; 1", 3, "none sent", "", ""},
		{"goes on for ever", "setInterval(() => {}, 1000); setImmediate(kill); 1", -1, "none sent", "", ""},
		{"much output", "console.log('x'.repeat(1 << 20)); process.exit(5)", 5, "none sent", strings.Repeat("x", 1<<20) + "\n", ""},
		{"killed", "console.log('before'); process.stderr.write('too'); await kill()", -1, "none sent", "before\n", "too"},
		{"trace", "// one\nfunction f() {\n  throw new TypeError('no')\n}\nawait null\nf()", 1, "TypeError: no", "",
			"<code>:3\n  throw new TypeError('no')\n        ^\n\nTypeError: no\n    at f (<code>:3:9)\n    at <code>:6:1\n\nNode.js *\n"},
		{"trace of the last statement", "const a = null // here\n\na.b", 1, "TypeError: Cannot read properties of null (reading 'b')", "",
			"<code>:3\na.b\n  ^\n\nTypeError: Cannot read properties of null (reading 'b')\n    at <code>:3:3\n\nNode.js *\n"},
		{"trace after imports", "import {\n  sep,\n} from 'path'; null.a", 1, "TypeError: Cannot read properties of null (reading 'a')", "",
			"<code>:3\n} from 'path'; null.a\n                    ^\n\nTypeError: Cannot read properties of null (reading 'a')\n    at <code>:3:21\n\nNode.js *\n"},
		{"trace of a tool", "async function f() {\n  await fail()\n}\nawait f()", 1, "ToolError: no such row", "",
			"<code>:2\n  await fail()\n        ^\n\nToolError: no such row\n    at f (<code>:2:9)\n    at <code>:4:7 {\n  type: 'missing',\n  code: -32000,\n  details: { id: 7 }\n}\n\nNode.js *\n"},
		{"syntax", "const a = 1\nconst b = = 2", 1, "SyntaxError: Unexpected token '='", "",
			"<code>:2\nconst b = = 2\n          ^\n\nSyntaxError: Unexpected token '='\n\nNode.js *\n"},
		{"syntax not closed", "f(1,\n  {", 1, "SyntaxError: Unexpected end of input", "",
			"<code>:2\n  {\n   ^\n\nSyntaxError: Unexpected end of input\n\nNode.js *\n"},
		{"syntax closed twice", "1\n})", 1, "SyntaxError: Unexpected token '}'", "",
			"<code>:2\n})\n^\n\nSyntaxError: Unexpected token '}'\n\nNode.js *\n"},
		{"no error", "throw { a: 1 }", 1, "Object: { a: 1 }", "", "Uncaught { a: 1 }\n\nNode.js *\n"},
		{"warnings", "await import('./local.mjs'); 1", 0, "1", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := nodeRun(t, nil, nodeObject{"code": tt.code})
			got := "none sent"
			if len(h.results) > 0 {
				got = nodeValue(h.results[0])
			}
			if got != tt.want || len(h.results) > 1 {
				t.Errorf("%d results, of which %s, want %s", len(h.results), got, tt.want)
			}
			if got := h.cmd.ProcessState.ExitCode(); got != tt.status {
				t.Errorf("exit status %d, want %d", got, tt.status)
			}
			if got := h.out.String(); got != tt.out {
				t.Errorf("printed %.200q (%d bytes), want %.200q", got, len(got), tt.out)
			}
			got, version, _ := strings.Cut(h.errs.String(), "Node.js v")
			if version != "" {
				got += "Node.js *\n"
			}
			if got != tt.errs {
				t.Errorf("stderr:\n%s\nwant:\n%s", got, tt.errs)
			}
		})
	}
}

func TestNodeWithoutTools(t *testing.T) {
	testenv.NoRace(t)
	h := nodeRun(t, nil, nodeObject{"code": "Object.keys(tools)", "tools": []any{}})
	if len(h.results) != 1 || nodeValue(h.results[0]) != "[]" {
		t.Errorf("got %v; stderr: %s", h.results, h.errs.String())
	}
}

func TestNodeRefused(t *testing.T) {
	testenv.NoRace(t)
	h := nodeRun(t, nil, nil)
	if got, want := h.errs.String(), "tegmen: hello: unauthorized\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if got := h.cmd.ProcessState.ExitCode(); got != 125 {
		t.Errorf("exit status %d, want 125", got)
	}
}

// A run that is pinned to a namespace has its tools by bare name, too.
func TestNodePinned(t *testing.T) {
	testenv.NoRace(t)
	h := nodeRun(t, nil, nodeObject{"namespace": "db", "code": "[await query('x'), await db.query('y'), typeof web]"})
	if len(h.results) != 1 || nodeValue(h.results[0]) != `["db: x","db: y","object"]` {
		t.Errorf("got %v; stderr: %s", h.results, h.errs.String())
	}
}

// A name that two things have: tools with their own namespace, and what Node
// has already.
func TestNodeNames(t *testing.T) {
	testenv.NoRace(t)
	tools := []nodeObject{
		{"name": "db", "schema": nodeObject{}}, {"name": "name", "namespace": "db", "schema": nodeObject{}},
		{"name": "fetch", "schema": nodeObject{}}, {"name": "a-b", "schema": nodeObject{}}, {"name": "a_b", "schema": nodeObject{}},
		{"name": "class", "schema": nodeObject{}}, {"name": "process", "schema": nodeObject{}}, {"name": "Promise", "schema": nodeObject{}},
		{"name": "undefined", "schema": nodeObject{}}, {"name": "result", "schema": nodeObject{}}, {"name": "call", "namespace": "my-db", "schema": nodeObject{}},
	}
	h := nodeRun(t, nil, nodeObject{"tools": tools, "code": `const all = [await db(), await db.name(), await fetch(), await a_b(), await tools['a-b'](),
	await tools.class(), await process(), await Promise(), await tools.undefined(), await tools.result(), await my_db.call()]
all`})
	want := `["db","name","fetch","a_b","a-b","class","process","Promise","undefined","result","call"]`
	if len(h.results) != 1 || nodeValue(h.results[0]) != want {
		t.Errorf("got %v; stderr: %s", h.results, h.errs.String())
	}
	if n := len(h.calls); n == 0 || h.calls[n-1]["namespace"] != "my-db" {
		t.Errorf("calls %v", h.calls)
	}
}

// Each row is the next run of one guest.
func TestNodeStateful(t *testing.T) {
	testenv.NoRace(t)
	rows := []struct{ code, want string }{
		{"const x = 1", "none"},
		{"x", "1"},
		{"const x = 2; x", "2"},
		{"let { a, b: [c = 9] } = { a: 1, b: [] }, d; [a, c, d]", "[1,9,null]"},
		{"function f() { return x + c }; class K { m() { return 5 } }; async function* g() { yield 1 }", "none"},
		{"[f(), new K().m(), (await g().next()).value]", "[11,5,1]"},
		{"x = 3; f()", "12"},
		{"for (var i = 0, j = 2; i < 3; i++) { var q = i }\nif (1) var z = 4\nfor (var { k } of [{ k: 8 }]);", "none"},
		{"[i, j, q, z, k]", "[3,2,2,4,8]"},
		{"function h() { var inner = 1; for (var other of []); return inner }\nh()", "1"},
		{"[typeof inner, typeof other]", `["undefined","undefined"]`},
		{"var x\nx", "3"},
		{"let n = () => 1\nn.name", `"n"`},
		{"const\n  two = 2\nlet s = `\n`\n;[two].concat(two)", "[2,2]"},
		{"import fs, { readFileSync } from 'fs'\nimport * as p from 'path'\nexport const y = 1", "none"},
		{"[fs.readFileSync === readFileSync, p.sep, y]", `[true,"/",1]`},
		{"throw new Error('no')", "Error: no"},
		{"process.exit(3)", "SystemExit: 3"},
		{"result = 4; process.exit(0)", "4"},
		{"1", "1"},
		{"const result = 5", "5"},
		{"6", "6"},
		{"if (1) {", "SyntaxError: Unexpected end of input"},
		{"await add(x, 1)", "4"},
		{"process.exit()", "none"},
		{"add(1, 2).then((v) => add(v, 1)).then((v) => { y = v }); 1", "1"},
		{"y", "4"},
		{"fail(); 1", "ToolError: no such row"},
		{"hang(); setImmediate(() => process.exit(0)); 1", "1"},
		{"hang(); setImmediate(() => process.exit(4)); 1", "SystemExit: 4"},
		{"const add = () => 7", "none"},
		{"add()", "7"},
		{"add()", "7"},
		{"const fetch = 1, navigator = 2, fs2 = 3; [fetch, navigator]", "[1,2]"},
		{"setImmediate(() => { throw new Error('late') }); await new Promise(() => {})", "Error: late"},
		{"let go; const gate = new Promise((r) => { go = r }); setImmediate(() => { throw new Error('late') }); await gate; return 'wrong'", "Error: late"},
		{"go(); await new Promise(setImmediate); 'right'", `"right"`},
		{"w", "5"},
	}
	jobs := make([]nodeObject, len(rows))
	for i, row := range rows {
		jobs[i] = nodeObject{"code": row.code, "stateful": true}
	}
	jobs[len(jobs)-1]["vars"] = nodeObject{"w": 5}
	h := nodeRun(t, nil, jobs...)
	for i, row := range rows {
		got := "nothing"
		if i < len(h.results) {
			got = nodeValue(h.results[i])
		}
		if got != row.want {
			t.Errorf("%s: got %s, want %s", row.code, got, row.want)
		}
	}
	if got := h.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("exit status %d at the end of the connection; stderr: %s", got, h.errs.String())
	}
	if got := fmt.Sprint(h.results[16]["error"]); !strings.Contains(got, "at <code>:1:7") {
		t.Errorf("error %s", got)
	}
}
