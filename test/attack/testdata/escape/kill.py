# what: a signal to a process of the host, by its number
# stops: ending or stopping programs of the host
# row: processes
# outside: ok
# inside: ESRCH
# landlock: EPERM

from lib.probe import *

with act():
    os.kill(int(host("PID")), 0)
