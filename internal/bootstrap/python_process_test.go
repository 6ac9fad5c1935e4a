package bootstrap_test

import (
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestPythonValues(t *testing.T) {
	testenv.Once(t)
	testenv.NoRace(t)
	const refused = " cannot be given to the host as JSON"
	runPython(t, []pythonCase{
		{name: "json", code: "[None, True, 1, -0.5, 'é\\n\\u2028\\x00', {'a': {}}, [], 2**70, 1e300]", result: value("[null,true,1,-0.5,\"é\\n\\u2028\\u0000\",{\"a\":{}},[],1180591620717411303424,1e+300]")},
		{name: "keys", code: "{1: 1, 1.5: 2, None: 3, True: 4}", result: value(`{"1":4,"1.5":2,"null":3}`)},
		{name: "sets and sequences", code: "from collections import deque, OrderedDict, Counter\n[{3, 1, 2}, frozenset('a'), {1, 'a'} == {1}, (1, (2,)), range(2), deque([1]), {'k': 1}.keys(), OrderedDict(a=1), Counter('aa')]",
			result: value(`[[1,2,3],["a"],false,[1,[2]],[0,1],[1],["k"],{"a":1},{"a":2}]`)},
		{name: "namedtuple", code: "from collections import namedtuple\nP = namedtuple('P', 'x y')\n[P(1, 2), {'p': [P(P(1, 2), 3)]}]", result: value(`[{"x":1,"y":2},{"p":[{"x":{"x":1,"y":2},"y":3}]}]`)},
		{name: "dataclass", code: "import dataclasses\n@dataclasses.dataclass\nclass D:\n a: int\n b: object = None\nD(1, D(2, {3}))", result: value(`{"a":1,"b":{"a":2,"b":[3]}}`)},
		{name: "bytes", code: "[b'hi', bytearray(b'hi'), memoryview(b'hi')]", result: value(`["aGk=","aGk=","aGk="]`)},
		{name: "times", code: "from datetime import *\n[datetime(2020, 1, 2, 3), date(2020, 1, 2), time(1, 2), timedelta(1, 2), {date(2020, 1, 2): 1}]", result: value(`["2020-01-02T03:00:00","2020-01-02","01:02:00",86402.0,{"2020-01-02":1}]`)},
		{name: "scalars", code: "import decimal, fractions, uuid, pathlib\n[decimal.Decimal('1.10'), fractions.Fraction(1, 3), uuid.UUID(int=1), pathlib.Path('/a')]", result: value(`["1.10","1/3","00000000-0000-0000-0000-000000000001","/a"]`)},
		{name: "enums", code: "import enum\nclass E(enum.Enum):\n A = (1,)\nclass I(enum.IntEnum):\n B = 2\nclass S(str, enum.Enum):\n C = 'c'\n[E.A, I.B, S.C, {S.C: 1, I.B: 2}]", result: value(`[[1],2,"c",{"c":1,"2":2}]`)},
		{name: "subclasses", code: "class T(str):\n def __str__(self): return 'no'\nclass N(int):\n def __repr__(self): return 'no'\nclass L(list): pass\n[T('a'), N(1), L([T('b')]), {T('k'): set()}]", result: value(`["a",1,["b"],{"k":[]}]`)},
		{name: "pydantic's way", code: "class M:\n def model_dump(self): return {'a': {1}}\nM()", result: value(`{"a":[1]}`)},
		{name: "numpy's way", code: "class A:\n dtype = 1\n def tolist(self): return [1, 2]\nA()", result: value("[1,2]")},
		{name: "to a tool", code: "[echo((1, {2})), echo(b'hi'), echo(v={'a': range(2)})]", result: value(`[[1,[2]],"aGk=",{"a":[0,1]}]`)},
		{name: "texts", code: "[echo('\U0001f600é\\u0001\\\\u'), {'\\\\ud800': 'é'}]", result: value(`["😀é\u0001\\u",{"\\ud800":"é"}]`)},
		{name: "object", code: "class Foo: pass\nresult = {'a': [Foo()]}", exit: 1, stderr: []string{"TypeError: value of type Foo at result"}, result: failed("TypeError", `value of type Foo at result[\"a\"][0]`+refused)},
		{name: "object to a tool", code: "echo(v=[object()])", exit: 1, stderr: []string{"Traceback (most recent call last):\n  File \"<code>\", line 1, in <module>\n    echo(v=[object()])\n"}, result: failed("TypeError", `value of type object at arguments[\"v\"][0]`+refused)},
		{name: "generator", code: "return (x for x in [])", exit: 1, stderr: []string{"TypeError"}, result: failed("TypeError", "value of type generator at result"+refused)},
		{name: "key", code: "return [{(1, 2): 3}]", exit: 1, stderr: []string{"TypeError"}, result: failed("TypeError", "key of type tuple at result[0]"+refused)},
		{name: "nan", code: "[1, float('nan')]", exit: 1, stderr: []string{"ValueError"}, result: failed("ValueError", "nan at result[1]"+refused)},
		{name: "infinity to a tool", code: "echo({'x': -float('inf')})", exit: 1, stderr: []string{"ValueError"}, result: failed("ValueError", `-inf at arguments[\"v\"][\"x\"]`+refused)},
		{name: "cycle", code: "x = {}\nx['x'] = [x]\nx", exit: 1, stderr: []string{"ValueError"}, result: failed("ValueError", `value that contains itself at result[\"x\"][0]`+refused)},
		{name: "the same twice is no cycle", code: "x = (1,)\n[x, [x, {1: x}], {2}]", result: value(`[[1],[[1],{"1":[1]}],[2]]`)},
		{name: "deep", code: "x = []\nfor i in range(100000): x = [x]\nx", exit: 1, stderr: []string{"ValueError"}, result: failed("ValueError", "value at result is nested too deeply to be given to the host as JSON")},
		{name: "surrogate", code: "['a', '\\ud800']", exit: 1, stderr: []string{"ValueError"}, result: failed("ValueError", "text with a lone surrogate at result[1]"+refused)},
		{name: "surrogate in a message", code: "raise KeyError('\\ud800')", exit: 1, stderr: []string{"KeyError"}, result: failed("KeyError", `'\\ud800'`)},
		{name: "too large", code: "result = 'x' * 1000", job: map[string]any{"limits": map[string]any{"frame": 900}}, exit: 1, stderr: []string{"tegmen: the result: "},
			result: failed("too_large", "message of 1077 bytes exceeds the limit of 900")},
		{name: "refused", code: "'refuse me'", exit: 1, stderr: []string{"tegmen: the result: no such result\n"}, result: failed("parse_error", "no such result")},
	})
}

func TestPythonProcess(t *testing.T) {
	testenv.Once(t)
	testenv.NoRace(t)
	runPython(t, []pythonCase{
		{name: "exit code", code: "import sys\nprint(1)\nsys.exit(7)", stdout: "1\n", exit: 7},
		{name: "exit with a text", code: "import sys\nsys.exit('so long')", exit: 1, stderr: []string{"so long\n"}},
		{name: "exit 0", code: "import sys\nsys.exit()"},
		{name: "exit 0 with a result", code: "import sys\nresult = 4\nsys.exit(0)", result: value("4")},
		{name: "exit 1 with a result", code: "import sys\nresult = 4\nsys.exit(1)", exit: 1},
		{name: "exit 0 with a bad result", code: "import sys\nresult = object()\nsys.exit(0)", exit: 1, stderr: []string{"TypeError: value of type object"},
			result: failed("TypeError", "value of type object at result cannot be given to the host as JSON")},
		{name: "exit in a function, return", code: "def f(): exit(5)\nf()\nreturn 1", exit: 5},
		{name: "_exit", code: "import os\nprint('line')\nos._exit(9)", stdout: "line\n", exit: 9},
		{name: "atexit and threads", code: "import atexit, threading\natexit.register(print, 'atexit')\nt = threading.Thread(target=lambda: (threading.main_thread().join(), print('thread')))\nt.start()\nprint('main')\n1",
			stdout: "main\nthread\natexit\n", result: value("1")},
		{name: "a thread calls after the code", code: "import threading\nm = threading.main_thread()\ndef f(i):\n m.join()\n print(add(i, 1))\n if i < 3: threading.Thread(target=f, args=(i + 1,)).start()\nthreading.Thread(target=f, args=(1,)).start()\nx = [1]\nx",
			stdout: "2\n3\n4\n", result: value("[1]")},
		{name: "a thread calls after an exception", code: "import threading\nm = threading.main_thread()\nthreading.Thread(target=lambda: (m.join(), print(add(1, 1)))).start()\n1 / 0",
			stdout: "2\n", exit: 1, stderr: []string{"ZeroDivisionError"}, result: failed("ZeroDivisionError", "division by zero")},
		{name: "an executor calls after the code", code: "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\ndef f(n): print(n) if n == 300 else f(add(n, 1))\npool.submit(f, 0)\npool.submit(lambda: print(add(1, 1)))\n5",
			stdout: "300\n2\n", result: value("5")},
		{name: "a worker of a loop calls after the code", code: "import asyncio\ndef f(n): print(n) if n == 300 else f(add(n, 1))\nloop = asyncio.new_event_loop()\nloop.run_in_executor(None, f, 0)\n5",
			stdout: "300\n", result: value("5")},
		{name: "a thread that nobody waits for", code: "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n5", result: value("5")},
		{name: "stdin", code: "import sys\n[input(), sys.stdin.read()]", stdin: "a\nb\nc", result: value(`["a","b\nc"]`)},
		{name: "the output of children", code: "import os\nprint('a')\nos.system('echo b')\nprint('c', end='')", stdout: "a\nb\nc", result: value("null")},
		{name: "stdout is closed", code: "import os, sys\nos.close(1)\nsys.stdout.write('x')\nresult = 1", exit: 120, stderr: []string{"Bad file descriptor"}, result: value("1")},
		{name: "no stdout", code: "import sys\nsys.stdout = None\nprint('x')\n1", result: value("1")},
		{name: "warnings", code: "import warnings\nwarnings.warn('careful')\n1", stderr: []string{"<code>:2: UserWarning: careful\n  warnings.warn('careful')\n"}, result: value("1")},
		{name: "killed", code: "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", exit: -9},
		{name: "interrupted", code: "import atexit\natexit.register(print, 'atexit')\ninterrupt()", exit: -2, stdout: "atexit\n", stderr: []string{"File \"<code>\", line 3, in <module>\n    interrupt()\n", "KeyboardInterrupt\n"}, result: failed("KeyboardInterrupt", "")},
		{name: "multiprocessing", code: "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n with m.get_context('fork').Pool(2) as p: r = p.map(f, range(3))\nr + [add(1, 2)]", result: value("[0,1,4,3]")},
		{name: "what is imported", code: "import sys\nhere = set(sys.modules)\nimport subprocess\nplain = subprocess.run([sys.executable, '-I', '-c', 'import sys; print(*sys.modules)'], stdout=-1).stdout.decode().split()\nhere - {*plain}", result: value(`["_ast","_json","gc"]`)},
		{name: "the code's own modules", code: "open('mine.py', 'w').write('x = 3')\nimport mine\nmine.x", result: value("3")},
	})
}
