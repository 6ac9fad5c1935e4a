# The end of a run whose code may have started threads.
import threading


def wait(status, members):
    """Waits for what the interpreter waits for at its end, so that the calls in it come before the result."""
    try:
        # Not by joining: a thread may itself wait for the end of the main one, and
        # executors end by what this calls first. A second time it does nothing.
        threading._shutdown()
        if sys.version_info < (3, 9):  # there executors have atexit end them
            for name in "concurrent.futures.thread", "concurrent.futures.process":
                if name in sys.modules:
                    sys.modules[name]._python_exit()
    except KeyboardInterrupt as e:
        load("report")
        return KeyboardInterrupt, report(e)
    except BaseException:  # the interpreter will meet it, too, and tell
        pass
    return status, members
