# what: userfaultfd for user-mode faults
# stops: stalling the kernel in the middle of a copy
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    os.close(call("userfaultfd", 1))
