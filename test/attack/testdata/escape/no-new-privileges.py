# what: programs that grant privileges
# stops: all setuid flaws (CVE-2017-5180 and others)
# row: privileges
# outside: ok
# inside: locked
# landlock: locked

from lib.probe import *

with act():
    if status("NoNewPrivs") == ["1"]:
        with contextlib.suppress(OSError):
            call("prctl", 38, 0, 0, 0, 0)
        if status("NoNewPrivs") == ["1"]:
            raise Word("locked")
