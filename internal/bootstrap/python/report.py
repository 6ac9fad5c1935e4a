# Uncaught exceptions: what is printed, and what the host receives.
import traceback


def report(e):
    """Prints an exception, and returns the members of the result for it."""
    try:
        clean(e)
        lines = traceback.format_exception(type(e), e, e.__traceback__)
        shown = "".join(lines).replace('File "%s"' % FILE, 'File "<code>"')
    except Exception:  # an exception that cannot be formatted
        shown = type(e).__name__ + "\n"
    if not isinstance(e, SystemExit):
        try:
            if sys.excepthook is not sys.__excepthook__:
                sys.excepthook(type(e), e, e.__traceback__)
            else:
                sys.stderr.write(shown)
        except Exception:
            pass
    return failed(type(e).__name__, message_of(e), shown)


def message_of(e):
    try:
        return str(e)
    except Exception:
        return ""


def failed(kind, message, shown):
    error = {"type": kind, "message": message, "traceback": shown}
    for key, value in error.items():
        error[key] = value.encode("utf-8", "backslashreplace").decode()
    return b',"error":' + dumps(error, "error")


def clean(e, seen=()):
    """Removes all but the code's own frames from an exception and its causes."""
    todo, seen = [e], set()
    while todo:
        e = todo.pop()
        if e is None or id(e) in seen:
            continue
        seen.add(id(e))
        if isinstance(e, SyntaxError) and e.filename in sources and e.text is None and e.lineno:
            lines = sources[e.filename].splitlines(True)
            e.text = lines[e.lineno - 1] if e.lineno <= len(lines) else None
        frames, tb, user = [], e.__traceback__, False
        while tb is not None:
            user = user or tb.tb_frame.f_code.co_filename in sources
            if tb.tb_frame.f_globals is not CORE and user:
                frames.append(tb)
            tb = tb.tb_next
        new = None
        for tb in reversed(frames):
            new = type(tb)(new, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
        e.__traceback__ = new
        todo += [e.__cause__, e.__context__, *getattr(e, "exceptions", ())]


def refused(error, job):
    """Reports a result that the host refuses, and returns the exit status."""
    kind, message = (error.get("data") or {}).get("type", "error"), error["message"]
    if kind != "completed":
        try:
            sys.stderr.write("tegmen: the result: %s\n" % message)
        except Exception:
            pass
        load("channel")
        request(b"result", [b'{"run":', text(job["run"]).encode(), failed(kind, message, ""), b"}"])
    return 1
