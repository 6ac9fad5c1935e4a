# what: kcmp
# stops: the order of the kernel's addresses
# row: processes
# outside: ok
# inside: EPERM
# landlock: EPERM
# unproven: ENOSYS (a kernel without it)

from lib.probe import *

with act():
    call("kcmp", os.getpid(), os.getpid(), 0, 0, 1)
