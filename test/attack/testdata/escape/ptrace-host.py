# what: ptrace of a process of the host
# stops: CVE-2016-8659, CVE-2016-9962
# row: processes
# outside: ok
# inside: EPERM
# landlock: EPERM
# unproven: EPERM (Yama)

from lib.probe import *

with act():
    call("ptrace", 0x4206, int(host("PID")), 0, 0)  # PTRACE_SEIZE
