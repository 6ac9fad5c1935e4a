# what: /dev/kmsg
# stops: the kernel's log
# row: devices, /proc and /sys
# outside: ok
# inside: ENOENT
# landlock: EACCES
# unproven: EPERM EACCES (kernel.dmesg_restrict)

from lib.probe import *

with act():
    opened("/dev/kmsg")
