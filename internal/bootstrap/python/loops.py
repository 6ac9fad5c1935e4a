# Calls in an event loop. The loop reads and writes alongside the threads that do, never
# blocks on either, and holds no lock meanwhile.
import asyncio, _socket, select

load("channel")
sock = _socket.socket(fileno=FD)
# Whatever the code's default is. Threads use blocking calls, and Linux accepts MSG_DONTWAIT
# per call; macOS ignores it on send, so there the channel stays non-blocking and threads
# wait in wait_for.
sock.settimeout(None if sys.platform == "linux" else 0)
NOW = (_socket.MSG_DONTWAIT,)
loops, writers = [], []  # that watch the channel


def call_later(tool, params, progress):
    call = Call()
    call.notify = progress
    line = line_of(call, b"tools/call", params)
    if len(line) > frame:
        return value_of(tool, too_large(line))
    coroutine = ask_later(tool, call, line)
    coroutine.__name__, coroutine.__qualname__ = tool.__name__, tool.__qualname__
    return coroutine


async def ask_later(tool, call, line):
    if gone:
        return value_of(tool, gone)
    call.loop = loop = asyncio.get_running_loop()
    call.future = loop.create_future()
    pending[call.id] = call
    outbox.append([line])
    try:
        watch(loop)
        push(loop)
        reply = await call.future
    finally:
        pending.pop(call.id, None)
        if call.reply is None:
            outbox.append(cancellation(call))
            push(loop)
    return value_of(tool, reply)


def tell(call, loop):
    """Passes a message for a call to its loop, from the thread that has read it."""
    if call.loop is loop:
        settle(call)
        return
    try:
        call.loop.call_soon_threadsafe(settle, call)
    except RuntimeError:  # the loop is closed
        pending.pop(call.id, None)


def settle(call):
    try:
        while call.steps:
            call.notify(call.steps.pop(0))
    except BaseException as e:
        if not call.future.done():
            call.future.set_exception(e)
    if call.reply is not None and not call.future.done():
        call.future.set_result(call.reply)


def watch(loop):
    if loop not in loops:
        loops[:] = [other for other in loops if not other.is_closed()]
        loop.add_reader(FD, pull, loop)
        loops.append(loop)


def pull(loop):
    if not reading.acquire(False):
        return  # a thread is reading
    try:
        if not inbox or b"\n" not in inbox[-1]:
            inbox.extend(map(sock.recv, SIZES, NOW))
        if inbox[-1]:
            if b"\n" in inbox[-1]:
                deliver(loop)
        else:
            hang_up(loop=loop)
    except BlockingIOError:
        pass
    except OSError:
        hang_up(loop=loop)
    finally:
        reading.release()
        if gone:
            loop.remove_reader(FD)
        hand_over()


def push(loop):
    """Writes as much as possible now, and the rest when the channel is writable."""
    if writing.acquire(False):
        try:
            while outbox:
                entry = outbox[0]
                sent = sum(entry[1:])
                if sent < len(entry[0]):
                    entry.extend(map(sock.send, (memoryview(entry[0])[sent:],), NOW))
                else:
                    del outbox[0]
        except BlockingIOError:
            pass
        except OSError:
            outbox.clear()
            hang_up(loop=loop)
        finally:
            writing.release()
    if outbox and not gone:
        if loop not in writers:
            loop.add_writer(FD, push, loop)
            writers.append(loop)
    elif loop in writers:
        loop.remove_writer(FD)
        writers.remove(loop)
