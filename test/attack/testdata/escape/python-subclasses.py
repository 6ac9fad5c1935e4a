# what: a file of the host: from () to os, past any list of allowed names
# stops: CVE-2025-5120, CVE-2026-5752: they reach os and meet the same walls
# row: code in a language's own sandbox
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    wrap = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "_wrap_close"][0]
    if wrap.__init__.__globals__["system"]("true") != 0:
        raise Word("no system")
    wrap.__init__.__globals__["open"](host("SECRET"), 0)
