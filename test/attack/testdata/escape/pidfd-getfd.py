# what: pidfd_getfd from the process itself
# stops: descriptors of others
# row: processes
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    os.close(call("pidfd_getfd", call("pidfd_open", os.getpid(), 0), 0, 0))
