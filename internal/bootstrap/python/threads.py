# The end of a run whose code may have started threads.
import threading


def wait(status, members):
    """Waits for what the interpreter waits for at exit, so that calls made there precede the result."""
    try:
        # Not with join: a thread may wait for the end of the main thread, and executors
        # are shut down by what this calls first. Calling it twice is harmless.
        threading._shutdown()
        if sys.version_info < (3, 9):  # there executors use atexit
            for name in "concurrent.futures.thread", "concurrent.futures.process":
                if name in sys.modules:
                    sys.modules[name]._python_exit()
    except KeyboardInterrupt as e:
        load("report")
        return KeyboardInterrupt, report(e)
    except BaseException:  # the interpreter will run into it again, and report it
        pass
    return status, members
