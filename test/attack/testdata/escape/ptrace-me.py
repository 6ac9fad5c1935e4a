# what: PTRACE_TRACEME
# stops: CVE-2019-13272
# row: processes
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("ptrace", 0, 0, 0, 0)
