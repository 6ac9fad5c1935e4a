# what: userfaultfd, for faults of user mode
# stops: holding the kernel up in the middle of a copy
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    os.close(call("userfaultfd", 1))
