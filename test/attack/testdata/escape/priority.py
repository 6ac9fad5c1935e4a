# what: the priority of a process of the host
# stops: slowing down programs of the host
# row: processes
# outside: ok
# inside: ESRCH
# landlock: EPERM

from lib.probe import *

with act():
    os.setpriority(os.PRIO_PROCESS, int(host("PID")), 1)
