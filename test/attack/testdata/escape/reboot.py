# what: reboot, with invalid magic numbers
# stops: turning the machine off
# row: kernel entry
# outside: EPERM EINVAL (takes root)
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

with act():
    call("reboot", 0, 0, 0, 0)
