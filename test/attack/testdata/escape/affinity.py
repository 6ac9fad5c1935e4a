# what: the CPUs of a process of the host
# stops: slowing down programs of the host
# row: processes
# outside: ok
# inside: ESRCH
# landlock: EPERM

from lib.probe import *

with act():
    pid = int(host("PID"))
    os.sched_setaffinity(pid, os.sched_getaffinity(pid))
