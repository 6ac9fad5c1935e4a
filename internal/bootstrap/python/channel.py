# The channel, once several calls may be in flight. A KeyboardInterrupt may come between
# any two bytecodes, so the result of a system call is stored by the C function that
# made the call (list.extend over map), and every later step is safe to repeat.
FDS, SIZES = (FD,), (65536,)
outbox = []  # [line, bytes written, bytes written, ...] each
pending = {}  # calls without an answer, by id
jobs = []  # of a stateful guest
reading, writing = _thread.RLock(), _thread.RLock()
new_id = iter(range(1, 1 << 62)).__next__


class Call:
    reply = loop = notify = None

    def __init__(self):
        self.id = new_id()
        self.steps = []
        self.lock = _thread.allocate_lock()
        self.lock.acquire()


def failure(message, code=-32006, kind="canceled"):
    return {"error": {"code": code, "message": message, "data": {"type": kind}}}


def wake(call, loop=None):
    if call.loop is not None:
        tell(call, loop)
    elif call.lock.locked():
        try:
            call.lock.release()
        except RuntimeError:  # another thread did
            pass


def answer(call, reply, loop=None):
    call.reply = reply
    wake(call, loop)
    pending.pop(call.id, None)


def hang_up(reason="the host closed the connection", loop=None):
    global gone
    gone = gone or failure(reason)
    for call in list(pending.values()):
        answer(call, gone, loop)


def deliver(loop=None):
    lines = b"".join(inbox).split(b"\n")
    for line in lines[:-1]:
        message = scan(line.decode(), 0)[0]
        method = message.get("method")
        if method is None:
            call = pending.get(message["id"])
            if call is not None:
                answer(call, message, loop)
            elif message["id"] is None:  # a line of ours was invalid
                for call in list(pending.values()):
                    answer(call, message, loop)
        elif method == "progress":
            call = pending.get(message["params"]["id"])
            if call is not None:
                call.steps.append(message["params"]["value"])
                wake(call, loop)
        elif method == "run":
            jobs.append(message["params"])
            if "run" in pending:
                answer(pending["run"], message)
        elif method == "cancel":
            for call in list(pending.values()):
                if call.id != "run":
                    answer(call, failure("the run has ended"), loop)
    inbox[:] = lines[-1:]


def wait_for(readable, writable):
    """Waits if the channel is non-blocking, as it is after a call from an event loop."""
    select.select(readable, writable, ())


def receive():
    if not inbox or b"\n" not in inbox[-1]:
        try:
            inbox.extend(map(os.read, FDS, SIZES))
        except BlockingIOError:
            return wait_for(FDS, ())
        except OSError:
            return hang_up()
        if not inbox[-1]:
            return hang_up()
    if b"\n" in inbox[-1]:
        deliver()


def flush():
    writing.acquire()
    while outbox:
        entry = outbox[0]
        sent = sum(entry[1:])
        if sent >= len(entry[0]):
            del outbox[0]
            continue
        try:
            entry.extend(map(os.write, FDS, (memoryview(entry[0])[sent:] if sent else entry[0],)))
        except BlockingIOError:
            wait_for((), FDS)
        except OSError:
            outbox.clear()
            hang_up()
    writing.release()


def hand_over():
    """Makes another waiting thread read, if there is one."""
    for call in list(pending.values()):
        if call.loop is None:
            return wake(call)


def ask(call, line):
    """Sends a request and waits for its answer. Of several threads that wait, one reads for all."""
    if gone:
        return gone
    try:
        pending[call.id] = call
        if line:
            outbox.append([line])
            flush()
        while call.reply is None or call.steps:
            if call.steps:
                call.notify(call.steps.pop(0))
            elif reading.acquire(False):
                while call.reply is None and not call.steps:
                    receive()
                reading.release()
            else:
                call.lock.acquire()
        return call.reply
    finally:
        try:
            leave(call)
        except BaseException:  # interrupted half-way
            leave(call)
            raise


def leave(call):
    for lock in reading, writing:
        while lock._is_owned():  # after an interrupt, which can break even "with"
            lock.release()
    pending.pop(call.id, None)
    if pending:
        hand_over()
    if call.reply is None and call.id != "run":
        call.reply = gone or failure("the call was interrupted")
        outbox.append(cancellation(call))
        flush()


def cancellation(call):
    return [b'{"jsonrpc":"2.0","method":"cancel","params":{"id":%d}}\n' % call.id]


def line_of(call, method, params):
    return b"".join((b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":' % (call.id, method), *params, b"}\n"))


def request(method, params, call=None):
    call = call or Call()
    line = line_of(call, method, params)
    return too_large(line) if len(line) > frame else ask(call, line)


def too_large(line):
    return failure("message of %d bytes exceeds the limit of %d" % (len(line), frame), -32007, "too_large")


def reset():
    """Resets, in a child of fork, the state of threads that exist only in the parent."""
    global reading, writing
    reading, writing = _thread.RLock(), _thread.RLock()
    pending.clear(), outbox.clear(), jobs.clear()
    if "sock" in CORE:
        sock.detach()


# A call of a tool.
running = None  # asyncio's function for the loop that runs in this thread


def find_running():
    global running
    running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    return running and running()


def call_tool(tool, args, arguments, progress):
    if args:
        arguments = named(tool, args, arguments)
    head = tool._head
    if head is None:
        spec = {k: tool._spec[k] for k in ("name", "namespace") if tool._spec.get(k)}
        head = tool._head = dumps(spec, "name")[:-1] + b',"arguments":'
    params = head, dumps(arguments, "arguments"), b',"progress":true}' if progress else b"}"
    if "asyncio" in sys.modules and (running() if running else find_running()) is not None:
        load("loops")
        return call_later(tool, params, progress)
    call = Call()
    call.notify = progress
    return value_of(tool, request(b"tools/call", params, call))


def value_of(tool, reply):
    if "error" in reply:
        if over and "threading" in sys.modules and sys.modules["threading"].current_thread().daemon:
            raise SystemExit  # a traceback printed while the interpreter ends would abort it
        e = reply["error"]
        data = e.get("data") or {}
        raise ToolError(e["message"], data.get("type", "tool_error"), e["code"], data.get("details"))
    value = reply["result"].get("value")
    output = tool._spec.get("output")
    if isinstance(value, str) and isinstance(output, dict) and output.get("contentEncoding") == "base64":
        import binascii
        return binascii.a2b_base64(value)
    return value


def named(tool, args, kwargs):
    schema = tool._spec.get("schema")
    names = list(schema.get("properties") or ()) if isinstance(schema, dict) else []
    if len(args) > len(names):
        raise TypeError("%s() takes %d positional argument%s but %d %s given" % (
            tool.__qualname__, len(names), "" if len(names) == 1 else "s", len(args), "was" if len(args) == 1 else "were"))
    for name, value in zip(names, args):
        if name in kwargs:
            raise TypeError("%s() got multiple values for argument %r" % (tool.__qualname__, name))
        kwargs[name] = value
    return kwargs
