# The core of the Python client. It is compiled at each start, which costs some
# milliseconds for a few hundred lines. So it contains only what every run needs, and
# imports only modules that a started interpreter has loaded, and _json and _ast. The rest
# is in PARTS, as text that is compiled on first use; all parts share these globals.
import sys, os, marshal, _thread, _ast

CORE = globals()
loading = _thread.RLock()


def load(part):
    with loading:
        if part in PARTS:
            exec(compile(PARTS[part], "<tegmen>", "exec", 0, True), CORE)
            PARTS.pop(part, None)


try:
    import _json

    class Plain:
        strict, object_hook, object_pairs_hook = False, None, None
        parse_float, parse_int, parse_constant = float, int, float

    scan = _json.make_scanner(Plain)
    text = _json.encode_basestring

    def encode(value, text=text):
        return "".join(_json.make_encoder({}, None, text, None, ":", ",", False, False, False)(value, 0))

    escape = _json.encode_basestring_ascii
    encode([""], escape)
except Exception:  # another implementation or version of Python
    load("fallback")


SIMPLE = {str, int, float, bool, type(None)}


def dumps(value, name):
    try:
        if type(value) is not dict or not SIMPLE.issuperset(map(type, value.values())):
            marshal.dumps(value)  # refuses subclasses: the encoder would treat a namedtuple as a list
        line = encode(value, escape)  # the faster of two, except for text that it makes longer
        return (encode(value) if "\\u" in line else line).encode()
    except (TypeError, ValueError, RecursionError):
        pass
    load("values")
    return encode(plain(value, name)).encode()


inbox = []  # received, not delivered yet
gone = None  # why calls are no longer possible
frame = 1 << 62


# Sends a request and returns its answer while nothing else can be in flight: before the
# code, and after code that has made no call. See channel.py.
def exchange(line):
    while line:
        line = line[os.write(FD, line):]
    while True:
        while not inbox or b"\n" not in inbox[-1]:
            inbox.append(os.read(FD, 65536))
            if not inbox[-1]:
                raise ConnectionError("the host closed the connection")
        line, _, rest = b"".join(inbox).partition(b"\n")
        inbox[:] = [rest]
        message = scan(line.decode(), 0)[0]
        if "id" in message:
            return message


# A child of fork must not use the channel of its parent.
def forked():
    global gone
    gone = {"error": {"code": -32006, "message": "tools cannot be called in a forked child", "data": {"type": "canceled"}}}
    os.close(FD)
    if "request" in CORE:
        reset()


# A run. VALUE is the hidden variable with the value of the last expression; a wrapped body
# that does not return returns END.
VALUE, END = "<value>", "<end>"
FILE = "<code>"
sources = {}
boot = sys.modules["__main__"]
main = type(sys)("__main__")
space = main.__dict__


# Compiles code. Returns the function that runs it, whether that is a coroutine, and whether it may return.
def build(source):
    tree = compile(source, FILE, "exec", _ast.PyCF_ONLY_AST, True)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, _ast.Expr):
        at = {k: getattr(last, k) for k in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
        tree.body[-1] = _ast.Assign([_ast.Name(VALUE, _ast.Store(), **at)], last.value, **at)
    try:
        code = compile(tree, FILE, "exec", _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    except SyntaxError as e:
        if "'return' outside function" not in str(e):
            raise
        load("wrap")
        return wrap(tree)
    return (lambda: eval(code, space)), code.co_flags & 0x80, False


def show_lines(linecache):
    for name, source in sources.items():
        linecache.cache[name] = len(source), None, source.splitlines(True), name


# A module finder that gives linecache the code once something imports linecache to show a
# traceback: importing it here would cost much.
def find_spec(name, path=None, target=None):
    if name == "linecache":
        sys.meta_path.remove(find_spec)
        spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name)
        fill = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (fill(module), show_lines(module))
        return spec


find_spec.find_spec = find_spec


# Runs code. Returns its exit status and the members of its result, or None if there is none.
def execute(job, source):
    status = 0
    before = {name: space[name] for name in ("result", "__result__") if name in space}
    try:
        try:
            call, coroutine, returns = build(source)
            if coroutine:
                load("loops")
                value = asyncio.run(call())
            else:
                value = call()
            known = returns and not (type(value) is str and value == END)
        except SystemExit as e:
            status, known = e.code, False
            if status and job.get("stateful"):
                raise
            if status:
                return status, None
        if not known:
            for name in "result", "__result__":
                if name in space and (space[name] is not before.get(name, END) or assigns(source, name)):
                    known, value = True, space[name]
                    break
        if known:
            return status, b',"value":' + dumps(value, "result")
        if VALUE in space:
            return status, shown(space[VALUE])
        return status, b"" if status is not None or job.get("stateful") else None
    except BaseException as e:
        load("report")
        return (KeyboardInterrupt if type(e) is KeyboardInterrupt else 1), report(e)


def shown(value):
    try:
        return b',"value":' + dumps(value, "result")
    except TypeError as e:
        if getattr(e, "path", "") != "result":
            raise
        return b""  # a by-product of the statement, not meant as a value


def assigns(source, name):
    load("wrap")
    return stores(compile(source, FILE, "exec", _ast.PyCF_ONLY_AST, True), name)


over = False  # the run has ended, and with it the program


# Runs a job and sends its result. Returns the exit status.
def run(job):
    global over
    source = (job.get("code") or "").lstrip("\ufeff")
    sources[FILE] = source
    if "linecache" in sys.modules:
        show_lines(sys.modules["linecache"])
    sys.argv[1:] = job.get("args") or sys.argv[1:]
    # Without tools, only code that names ToolError or tools can see whether they exist.
    if job["tools"] or "ool" in source or "ToolError" in space:
        load("tools")
        bind(job)
    space.update(job.get("vars") or ())
    gc.enable()
    status, members = execute(job, source)
    if "threading" in sys.modules and not job.get("stateful"):
        load("threads")
        status, members = wait(status, members)
    space.pop(VALUE, None)
    for stream in sys.stdout, sys.stderr:
        try:
            stream.flush()
        except Exception:  # output is lost, the result is not
            pass
    over = not job.get("stateful")
    if members is not None and not gone:
        params = b'{"run":' + text(job["run"]).encode() + members + b"}"
        if "request" in CORE or len(params) > frame - 100:
            load("channel")
            reply = request(b"result", [params])
        else:
            reply = exchange(b'{"jsonrpc":"2.0","id":0,"method":"result","params":' + params + b"}\n")
        if "error" in reply and not gone:
            load("report")
            status = refused(reply["error"], job)
    return status


def start():
    global frame
    os.register_at_fork(after_in_child=forked)
    hello = exchange(b"")
    if "error" in hello:
        return "tegmen: " + hello["error"]["message"]
    job = hello["result"]
    frame = job["limits"]["frame"]
    sys.modules["__main__"] = main
    space["__builtins__"] = sys.modules["builtins"]
    path = os.environ.get("PYTHONPATH")
    sys.path[:0] = [""] + (path.split(":") if path else [])
    sys.argv[0] = "<code>"
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)
    if "linecache" not in sys.modules:
        sys.meta_path.insert(0, find_spec)
    if job.get("stateful"):
        load("stateful")
        return run_all(job)
    return run(job)


try:
    status = start()
except OSError as e:
    status = "tegmen: %s" % e
if status is KeyboardInterrupt:  # the interpreter then ends with the signal; report has printed it
    sys.excepthook = lambda *e: None
    raise status
sys.exit(status)
