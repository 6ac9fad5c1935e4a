# what: setns into the namespaces of a process of the host
# stops: entering the host's namespaces
# row: namespaces and mounts
# outside: EPERM (takes root)
# inside: ESRCH
# landlock: EPERM

from lib.probe import *

with act():
    call("setns", call("pidfd_open", int(host("PID")), 0), CLONE_NEWNET)
