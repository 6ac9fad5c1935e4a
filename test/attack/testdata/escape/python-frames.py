# what: a file of the host: from a generator's frame to the built-in functions
# stops: CVE-2025-9959, CVE-2026-4963
# row: code in a language's own sandbox
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    frame = (lambda: (x for x in ()))().gi_frame
    frame.f_builtins["open"](host("SECRET")).close()
