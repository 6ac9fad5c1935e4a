package bootstrap_test

import (
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestPythonCode(t *testing.T) {
	testenv.Once(t)
	testenv.NoRace(t)
	runPython(t, []pythonCase{
		{name: "last expression", code: "1\n2", result: value("2")},
		{name: "print", code: "print(1)", stdout: "1\n", result: value("null")},
		{name: "statement", code: "x = 1", result: []string{"{}"}},
		{name: "empty", code: "", result: []string{"{}"}},
		{name: "comment", code: "# nothing\n", result: []string{"{}"}},
		{name: "docstring", code: `"""text"""`, result: value(`"text"`)},
		{name: "result", code: "result = 5\n6", result: value("5")},
		{name: "__result__", code: "__result__ = None\n6", result: value("null")},
		{name: "result over __result__", code: "__result__ = 1\nresult = 2", result: value("2")},
		{name: "return", code: "result = 5\nif result: return {'a': result}\n7", result: value(`{"a":5}`)},
		{name: "return nothing", code: "result = 5\nreturn", result: value("null")},
		{name: "return not reached", code: "if False: return 1\n2", result: value("2")},
		{name: "return not reached, result", code: "result = 3\nif False: return 1\n2", result: value("3")},
		{name: "no result is no tool's", code: "1", job: map[string]any{"tools": []any{map[string]any{"name": "result", "schema": map[string]any{}}}}, result: value("1")},
		{name: "a statement's by-product", code: "import re\nre.match('a', 'a')", result: []string{"{}"}},
		{name: "byte order mark, other line ends", code: "\ufeffx = '''a\r\nb'''\r\nx", result: value(`"a\nb"`)},
		{name: "text of many lines", code: "def f():\n    return '''a\n  b\n\tc\n'''\nif 1: return f()", result: value(`"a\n  b\n\tc\n"`)},
		{name: "module", code: "import sys\n[__name__, sys.modules['__main__'].__dict__ is globals(), sys.argv, sys.path[0], __doc__]", args: []string{"a", "-b"},
			result: value(`["__main__",true,["\u003ccode\u003e","a","-b"],"",null]`)},
		{name: "arguments of the job", code: "import sys\nsys.argv", args: []string{"a"}, job: map[string]any{"args": []string{"b"}}, result: value(`["\u003ccode\u003e","b"]`)},
		{name: "PYTHONPATH", code: "import sys\nsys.path[:3]", env: []string{"PYTHONPATH=/a:/b"}, result: value(`["","/a","/b"]`)},
		{name: "vars", code: "[x, add]", job: map[string]any{"vars": map[string]any{"x": []int{1}, "add": "mine"}}, result: value(`[[1],"mine"]`)},
		{name: "return in a module's way", code: `
"""doc"""
from __future__ import annotations
import pickle, os.path as p
n: int = 1
later: Missing
def fact(k: Missing) -> int:
    global n
    n += 1
    return k * fact(k - 1) if k else 1
class C:
    m: Missing = n
    def get(self): return self.m + n
for i in range(3):
    j: int = i
try:
    1 / 0
except ZeroDivisionError as e:
    k = str(e)
with open('/dev/null') as f, open('/dev/null') as (g): pass
exec('z = n + 1')
if (w := 3) > 2: pass
sq = [x * w for x in range(3) if (last := x) >= 0]
l = lambda: sq
del i
locals()['loc'] = vars()['var'] = 1
if True:
    return [loc, var, fact(3), n, C().get(), j, k, z, w, sq, last, l(), sorted(set('ifgjlnwz') & set(globals())), 'e' in globals(), 'x' in globals(),
            type(pickle.loads(pickle.dumps(C()))).__qualname__, __doc__, fact.__qualname__, [c for c in 'ab'], {v: v for v in 'c'}]
`, result: value(`[1,1,6,5,6,2,"division by zero",2,3,[0,3,6],2,[0,3,6],["f","g","j","l","n","w","z"],false,false,"C","doc","fact",["a","b"],{"c":"c"}]`)},
		{name: "return, yield", code: "return 2\nyield 1", exit: 1, stderr: []string{"SyntaxError: 'yield' outside function"}, result: failed("SyntaxError", "'yield' outside function")},
		{name: "return in a class", code: "class C:\n    return 1", exit: 1, stderr: []string{"  File \"<code>\", line 2\n    return 1\n", "SyntaxError: 'return' outside function"},
			result: failed("SyntaxError", "'return' outside function (\\u003ccode\\u003e, line 2)")},
		{name: "return and global", code: "x = 1\ndef f():\n global x\n x = 2\nf()\nreturn x", result: value("2")},
		{name: "return, traceback", code: "x = 1\nif x: 1 / 0\nreturn x", exit: 1, result: failed("ZeroDivisionError", "division by zero"),
			stderr: []string{"Traceback (most recent call last):\n  File \"<code>\", line 2, in <module>\n    if x: 1 / 0\n"}},
		{name: "syntax error", code: "x = 1\nx = = 2", exit: 1, stderr: []string{"  File \"<code>\", line 2\n    x = = 2\n", "^\nSyntaxError: invalid syntax\n"},
			result: failed("SyntaxError", "invalid syntax (\\u003ccode\\u003e, line 2)")},
		{name: "a cause", code: "try: {}['a']\nexcept KeyError as e: raise ValueError('b') from e", exit: 1, result: failed("ValueError", "b"),
			stderr: []string{"Traceback (most recent call last):\n  File \"<code>\", line 1, in <module>\n    try: {}['a']\n", "KeyError: 'a'\n", "direct cause", "line 2, in <module>\n    except KeyError", "ValueError: b\n"}},
		{name: "a traceback of the code's own", code: "import traceback\ntry: 1 / 0\nexcept Exception: print(traceback.format_exc().splitlines()[1:3])", stdout: "['  File \"<code>\", line 2, in <module>', '    try: 1 / 0']\n", result: []string{"{}"}},
		{name: "source", code: "import inspect\ndef f(): return 1\ninspect.getsource(f)", result: value(`"def f(): return 1\n"`)},
		{name: "a hook for exceptions", code: "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0", exit: 1, stdout: "hook ZeroDivisionError\n", result: failed("ZeroDivisionError", "division by zero")},
		{name: "an exception that cannot be shown", code: "class E(Exception):\n def __str__(self): raise KeyError\nraise E", exit: 1, stderr: []string{"E"}, result: failed("E", "")},
		{name: "deep recursion", code: "def f(): f()\nf()", exit: 1, stderr: []string{"line 1, in f\n", "more times]", "RecursionError: maximum"}, result: failed("RecursionError", "maximum recursion depth exceeded")},
	})
}

func TestPythonAwait(t *testing.T) {
	testenv.Once(t)
	testenv.NoRace(t)
	const sleep = "import asyncio\n"
	cases := []pythonCase{
		{name: "last expression", code: "await add(1, 2)", result: value("3")},
		{name: "gather", code: sleep + "await asyncio.gather(*[meet(i, 5) for i in range(5)])", result: value("[0,1,2,3,4]")},
		{name: "tasks", code: sleep + "ts = [asyncio.create_task(meet(i)) for i in range(2)]\nreturn [await t for t in ts]", result: value("[0,1]")},
		{name: "return", code: "x = await add(1, 2)\ndef f(): return x\nif x: return f()", result: value("3")},
		{name: "for and with", code: `
import contextlib
async def count():
    for i in range(3): yield await add(i, i)
@contextlib.asynccontextmanager
async def within():
    yield 'w'
got = [x async for x in count()]
async for x in count(): got.append(x)
async with within() as w: got.append(w)
got`, result: value(`[0,2,4,0,2,4,"w"]`)},
		{name: "for and with, return", code: "async def count():\n yield 1\n yield 2\nasync for x in count():\n  if x == 2: return [x, x in [y async for y in count()]]", result: value("[2,true]")},
		{name: "run by the code", code: sleep + "async def main(): return await asyncio.gather(meet(1), meet(2))\nasyncio.run(main())", result: value("[1,2]")},
		{name: "loops one after the other", code: sleep + "async def main(): return await add(1, 1)\n[asyncio.run(main()), asyncio.run(main()), add(1, 1)]", result: value("[2,2,2]")},
		{name: "failure", code: "async def f():\n    await fail()\nawait f()", exit: 1, result: failed("ToolError", "it broke"),
			stderr: []string{"Traceback (most recent call last):\n  File \"<code>\", line 3, in <module>\n    await f()\n", "  File \"<code>\", line 2, in f\n    await fail()\n", "ToolError: it broke\n"}},
		{name: "canceled", code: sleep + "t = asyncio.create_task(never())\nawait add(1, 1)\nt.cancel()\ntry: await t\nexcept asyncio.CancelledError: print('canceled')\nawait cancels()", stdout: "canceled\n", result: value("1")},
		{name: "timeout", code: sleep + "try: await asyncio.wait_for(never(), 0.01)\nexcept asyncio.TimeoutError: print('late')\nawait cancels()", stdout: "late\n", result: value("1")},
		{name: "left over", code: sleep + "async def f():\n try: await never()\n finally: print('ended')\nt = asyncio.create_task(f())\nawait add(1, 1)", stdout: "ended\n", result: value("2")},
		{name: "a thread", code: sleep + "await asyncio.get_running_loop().run_in_executor(None, add, 1, 2)", result: value("3")},
		{name: "a thread that the loop waits for", code: "import threading\nawait add(1, 1)\nr = []\nt = threading.Thread(target=lambda: r.append(add(1, 2)))\nt.start()\nt.join()\nr + [await add(1, 3)]", result: value("[3,4]")},
		{name: "a loop in each thread", code: sleep + `
import threading
got = {}
async def both(i): return await asyncio.gather(meet(2 * i, 8), meet(2 * i + 1, 8))
def work(i): got[i] = asyncio.run(both(i))
ts = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in ts]
[t.join() for t in ts]
sorted(got.items())`, result: value(`[[0,[0,1]],[1,[2,3]],[2,[4,5]],[3,[6,7]]]`)},
		{name: "threads and tasks", code: sleep + `
loop = asyncio.get_running_loop()
def some(i): return [add(i, j) for j in range(30)]
async def others(i): return [await add(i, j) for j in range(30)]
r = await asyncio.gather(*[loop.run_in_executor(None, some, i) for i in range(4)], *[others(i) for i in range(4)])
r[:4] == r[4:] == [[i + j for j in range(30)] for i in range(4)]`, result: value("true")},
		{name: "large", code: sleep + "await asyncio.gather(*[length('x' * 4000000) for i in range(5)], *[echo('y' * 1000) for i in range(2)])", result: value(`[4000000,4000000,4000000,4000000,4000000,"` + repeat("y", 1000) + `","` + repeat("y", 1000) + `"]`)},
		{name: "the host does not read", code: sleep + "t = asyncio.create_task(pause())\nawait asyncio.sleep(0.01)\nu = asyncio.create_task(length('x' * 4000000))\nfor i in range(9): await asyncio.sleep(0)\nopen('alive', 'w').close()\n[await t, await u]",
			result: value("[true,4000000]")},
		{name: "progress", code: "seen = []\n[await steps.call({}, progress=seen.append), seen]", result: value(`["done",[0,1,2]]`)},
		{name: "progress raises", code: "def p(v): raise KeyError(v)\ntry: await steps.call({}, progress=p)\nexcept KeyError as e: print(e)\nawait add(1, 1)", stdout: "0\n", result: value("2")},
		{name: "host has gone", code: sleep + "r = await asyncio.gather(never(), hang_up(), return_exceptions=True)\nprint([e.type for e in r])\ntry: await add(1, 1)\nexcept ToolError as e: print(e)",
			stdout: "['canceled', 'canceled']\nthe host closed the connection\n"},
		{name: "too large", code: "try: await echo('x' * 1000)\nexcept ToolError as e: print(e.type)", job: map[string]any{"limits": map[string]any{"frame": 800}}, stdout: "too_large\n", result: []string{"{}"}},
		{name: "exit", code: "import sys\nawait add(1, 1)\nsys.exit(4)", exit: 4},
		{name: "default timeout of sockets", code: sleep + "import socket\nsocket.setdefaulttimeout(5)\nasync def f(): return await add(1, 1)\nasyncio.run(f()) + len(big(200000))", result: value("200002")},
	}
	for _, c := range cases {
		c.name, c.deaf = c.name+", deaf kernel", true
		cases = append(cases, c)
	}
	runPython(t, cases)
}

func TestPythonStateful(t *testing.T) {
	testenv.NoRace(t)
	job := map[string]any{"stateful": true}
	codes := func(codes ...string) (all []map[string]any) {
		for i, c := range codes {
			all = append(all, map[string]any{"code": c, "run": "r-" + string(rune('2'+i))})
		}
		return all
	}
	runPython(t, []pythonCase{
		{name: "variables", job: job, code: "x = 1\ndef f(): return x", later: codes("x += 1", "f()"), result: results([]string{"{}"}, []string{"{}"}, value("2"))},
		{name: "result is of its run", job: job, code: "result = 1", later: codes("result + 1", "result = 1", "result = result", "3"),
			result: results(value("1"), value("2"), value("1"), value("1"), value("3"))},
		{name: "exceptions", job: job, code: "x = 1\n\ndef f():\n    1 / 0\n", later: codes("f()", "x"),
			result: results([]string{"{}"}, failed("ZeroDivisionError", "division by zero"), value("1")),
			stderr: []string{"  File \"<code>\", line 1, in <module>\n    f()\n", "line 4, in f\n    1 / 0\n"}},
		{name: "exit", job: job, code: "import sys\nsys.exit(3)", later: codes("sys.exit('text')", "1"), result: results(failed("SystemExit", "3"), failed("SystemExit", "text"), value("1"))},
		{name: "interrupted", job: job, code: "interrupt()", later: codes("1"), stderr: []string{"KeyboardInterrupt\n"}, result: results(failed("KeyboardInterrupt", ""), value("1"))},
		{name: "exit 0", job: job, code: "import sys\nsys.exit()", later: codes("sys.exit(0)", "result = 2\nquit()", "7\nsys.exit(None)", "result"),
			result: results([]string{"{}"}, []string{"{}"}, value("2"), []string{"{}"}, value("2"))},
		{name: "await", job: job, code: "await add(1, 2)", later: codes("await add(1, 3)", "add(1, 4)", "return await add(1, 5)"), result: results(value("3"), value("4"), value("5"), value("6"))},
		{name: "tools", job: job, code: "add = 5", later: []map[string]any{{"tools": []any{map[string]any{"name": "add"}, map[string]any{"name": "echo", "schema": map[string]any{"properties": map[string]any{"v": map[string]any{}}}}}, "code": "[add, echo(1), 'fail' in globals(), list(tools)]"}},
			result: results([]string{"{}"}, value(`[5,1,false,["add","echo"]]`))},
		{name: "vars", job: job, code: "x = 1", later: []map[string]any{{"vars": map[string]any{"x": 2}, "code": "x"}}, result: results([]string{"{}"}, value("2"))},
		{name: "a thread goes on", job: job, code: "import threading, _thread\ngo = _thread.allocate_lock()\ngo.acquire()\nr = []\ndef f():\n with go: r.append(add(1, 2))\nt = threading.Thread(target=f)\nt.start()",
			later: codes("go.release()\nt.join()\nr"), result: results(value("null"), value("[3]"))},
		{name: "output comes before the result", job: job, code: "print('a', end='')", later: codes("print('b')"), stdout: "ab\n", result: results(value("null"), value("null"))},
	})
}
