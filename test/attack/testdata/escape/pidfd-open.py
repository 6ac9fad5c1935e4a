# what: pidfd_open of a process of the host
# stops: calls that take a pidfd: pidfd_getfd, setns
# row: processes
# outside: ok
# inside: ESRCH
# landlock: ok (not stopped: it gives no more than the number does)

from lib.probe import *

with act():
    os.close(call("pidfd_open", int(host("PID")), 0))
