# what: ptrace of the process's own child
# stops: CVE-2019-13272, CVE-2022-30594: rare code; calls changed after they were filtered
# row: processes
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    if (pid := os.fork()) == 0:
        signal.pause()
    try:
        call("ptrace", 0x4206, pid, 0, 0)  # PTRACE_SEIZE
    finally:
        os.kill(pid, signal.SIGKILL)
