# The program for python3 -c. It sends hello before anything else, so that the host
# prepares the answer while the rest is compiled.
import os, gc

gc.disable()  # until the code runs; there is nothing to collect

FD = int(os.environ.pop("TEGMEN_FD"))
os.set_inheritable(FD, False)
HELLO = '{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"token":"%s"}}\n'
try:
    os.write(FD, (HELLO % os.environ.pop("TEGMEN_TOKEN", "")).encode())
except OSError:  # the host is gone: the read will report that
    pass
PARTS = {}  # filled in by python.go
exec(compile(PARTS["core"], "<tegmen>", "exec", 0, True))
