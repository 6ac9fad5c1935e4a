# what: syslog: the size of the kernel's log
# stops: addresses and more in the kernel's log
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM
# unproven: EPERM (kernel.dmesg_restrict)

from lib.probe import *

with act():
    call("syslog", 10, 0, 0)
