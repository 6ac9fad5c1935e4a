# what: the process that started this one
# stops: CVE-2016-8659: ptrace of the privileged part
# row: processes
# outside: ok
# inside: hidden
# landlock: ok (not stopped: visible, but not accessible)

from lib.probe import *

with act():
    if os.getppid() == 0:
        raise Word("hidden")
    read(f"/proc/{os.getppid()}/stat")
