package bootstrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/bootstrap"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// pythons are the interpreters to test with: those in TEGMEN_PYTHONS, a list
// like PATH, or python3.
func pythons(t *testing.T) []string {
	if list := os.Getenv("TEGMEN_PYTHONS"); list != "" {
		return filepath.SplitList(list)
	}
	testenv.Need(t, testenv.Program("python3"))
	p, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	return []string{p}
}

func runPython(t *testing.T, cases []pythonCase) {
	t.Parallel()
	for _, python := range pythons(t) {
		for _, c := range cases {
			t.Run(filepath.Base(filepath.Dir(filepath.Dir(python)))+"/"+c.name, func(t *testing.T) { c.run(t, python) })
		}
	}
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }
func value(json string) []string    { return []string{`{"value":` + json + `}`} }
func failed(k, m string) []string {
	return []string{`{"error":{"type":"` + k + `","message":"` + m + `"}}`}
}
func results(all ...[]string) []string {
	var list []string
	for _, r := range all {
		list = append(list, r...)
	}
	return list
}

// One argument of a program may have 128 KiB.
func TestPythonBootIsShort(t *testing.T) {
	testenv.NoRace(t)
	for _, arg := range bootstrap.Python([]string{"a"}).Argv {
		if len(arg) > 120<<10 {
			t.Errorf("an argument of %d bytes", len(arg))
		}
	}
}

func TestPythonCalls(t *testing.T) {
	testenv.Once(t)
	testenv.NoRace(t)
	runPython(t, []pythonCase{
		{name: "positional", code: "add(1, 2)", result: value("3")},
		{name: "keywords", code: "add(b=1, a=2)", result: value("3")},
		{name: "both", code: "add(1, b=2)", result: value("3")},
		{name: "too many", code: "add(1, 2, 3)", exit: 1, stderr: []string{`File "<code>", line 1, in <module>`},
			result: failed("TypeError", "add() takes 2 positional arguments but 3 were given")},
		{name: "twice", code: "add(1, a=3)", exit: 1, stderr: []string{"TypeError"},
			result: failed("TypeError", "add() got multiple values for argument 'a'")},
		{name: "namespaces", code: "[db.query('x'), web.query(q='y'), db.select(), dir(db), 'query' in globals()]",
			result: value(`["db.query:{\"q\":\"x\"}","web.query:{\"q\":\"y\"}","db.select:{}",["query","select"],false]`)},
		{name: "pinned", code: "select()", job: map[string]any{"namespace": "db"}, result: value(`"db.select:{}"`)},
		{name: "mapping", code: "[tools['db.query']('x'), tools['add'](1, 2), 'query' in tools, tools['not a name'](), tools['class'](), len(tools)]",
			result: value(`["db.query:{\"q\":\"x\"}",3,false,"not a name",".class:{}",21]`)},
		{name: "dash", code: "[with_dash(), tools['with-dash'](), 'with_dash' in tools]", result: value(`["with-dash","with-dash",false]`)},
		{name: "no such tool", code: "try:\n db.nothing\nexcept AttributeError as e:\n print(e)\ntry:\n tools['nothing']\nexcept KeyError as e:\n pass",
			stdout: "namespace 'db' has no tool 'nothing'; it has query, select\n", result: []string{"{}"}},
		{name: "shadowed", code: "add = 5\nadd + tools['add'](1, 2)", result: value("8")},
		{name: "a dict is one argument", code: "echo({'v': 1})", result: value(`{"v":1}`)},
		{name: "bytes", code: "blob()", result: value(`"aGkA"`)},
		{name: "bytes are bytes", code: "blob() == b'hi\\0'", result: value("true")},
		{name: "failure", code: "try:\n fail()\nexcept RuntimeError as e:\n assert type(e) is ToolError\n r = [str(e), e.message, e.type, e.code, e.details]\nr",
			result: value(`["it broke","it broke","oops",-32000,{"x":1}]`)},
		{name: "uncaught", code: "def f():\n    fail()\n\nf()", exit: 1, result: failed("ToolError", "it broke"),
			stderr: []string{"Traceback (most recent call last):\n  File \"<code>\", line 4, in <module>\n    f()\n", "  File \"<code>\", line 2, in f\n    fail()\n", "ToolError: it broke\n"}},
		{name: "progress", code: "seen = []\n[steps.call({}, progress=lambda v: seen.append(v + add(1, 1))), seen]", result: value(`["done",[2,3,4]]`)},
		{name: "progress raises", code: "def p(v): raise KeyError(v)\ntry:\n steps.call({}, progress=p)\nexcept KeyError as e: print('key', e)\nadd(1, 1)", stdout: "key 0\n", result: value("2")},
		{name: "signature", code: "import inspect\n[str(inspect.signature(t)) for t in (add, meet, blob, big)] + [add.__name__, db.query.__qualname__, callable(add)]",
			result: value(`["(a: int, b: int) -\u003e int","(who, n: int = 2)","() -\u003e bytes","(n: int = ...)","add","db.query",true]`)},
		{name: "doc", code: "add.__doc__", result: value(`"Adds two numbers.\n\nParameters:\n    a (integer): the first\n    b (integer)"`)},
		{name: "help", code: "import contextlib, io\nout = io.StringIO()\nwith contextlib.redirect_stdout(out): help(add)\n[line.strip() for line in out.getvalue().splitlines() if line.strip()]",
			result: value(`["Help on Tool in module __main__:","add(a: int, b: int) -\u003e int","Adds two numbers.","Parameters:","a (integer): the first","b (integer)"]`)},
		{name: "attribute of a class", code: "class C: add = add\nC().add(1, 2)", result: value("3")},
		{name: "copied", code: "import pickle, copy\ne = pickle.loads(pickle.dumps(ToolError('m', 'k')))\n[copy.deepcopy(add)(1, 2), str(e), e.type]",
			result: value(`[3,"m","k"]`)},
		{name: "large", code: "[length('é' * 3000000), len(big(5000000))]", result: value("[6000000,5000000]")},
		{name: "too large", code: "try:\n echo('x' * 1000)\nexcept ToolError as e: print(e.type, e.code)\nadd(1, 2)", job: map[string]any{"limits": map[string]any{"frame": 800}},
			stdout: "too_large -32007\n", result: value("3")},
		{name: "unread", code: "unread()", exit: 1, stderr: []string{"ToolError: nested too deeply"}, result: failed("ToolError", "nested too deeply")},
		{name: "host has gone", code: "for f in hang_up, cancels:\n try: f()\n except ToolError as e: print(e.type, e)",
			stdout: strings.Repeat("canceled the host closed the connection\n", 2)},
		{name: "over", code: "try: over()\nexcept ToolError as e: print(e.type, e)", stdout: "canceled the run has ended\n", result: []string{"{}"}},
		{name: "interrupted", code: "try: interrupt()\nexcept KeyboardInterrupt: print('int')\nadd(1, 2)", stdout: "int\n", result: value("3")},
		{name: "interrupted anywhere", code: `
import signal, random
class Stop(BaseException): pass
def stop(*a): raise Stop
signal.signal(signal.SIGALRM, stop)
big, stops = 'x' * 200000, 0
for i in range(1000):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 + random.random() * 3e-4)
            assert (echo(big + str(i)) == big + str(i) if i % 50 == 0 else add(i, 1) == i + 1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Stop:
        stops += 1
[stops > 0, add(1, 2)]`, result: value("[true,3]")},
		{name: "threads", code: "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as p: r = list(p.map(lambda i: meet(i, 8), range(8)))\nr", result: value("[0,1,2,3,4,5,6,7]")},
		{name: "many threads", code: "import threading\nbad = []\ndef f(i):\n for j in range(100):\n  if add(i, j) != i + j: bad.append((i, j))\nts = [threading.Thread(target=f, args=(i,)) for i in range(10)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nbad", result: value("[]")},
		{name: "fork", code: "import os, sys\npid = os.fork()\nif not pid:\n try: add(1, 2)\n except ToolError as e: print(e)\n sys.exit(0)\nos.waitpid(pid, 0)\nadd(1, 2)",
			stdout: "tools cannot be called in a forked child\n", result: value("3")},
		{name: "forked child falls off the end", code: "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\npid > 0", result: value("true")},
		{name: "not inherited", code: "import subprocess, os\nprint(subprocess.run(['sh', '-c', 'echo out; echo x >&3'], stderr=subprocess.DEVNULL, close_fds=False).returncode > 0, 'TEGMEN_FD' in os.environ, 'TEGMEN_TOKEN' in os.environ)\nadd(1, 2)",
			stdout: "out\nTrue False False\n", result: value("3")},
	})
}
