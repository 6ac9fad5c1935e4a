# what: /proc/sysrq-trigger
# stops: restarting the machine
# row: devices, /proc and /sys
# outside: EACCES (takes root)
# unproven: ENOENT (a kernel without it)
# inside: EROFS ENOENT
# landlock: EACCES ENOENT

from lib.probe import *

with act():
    opened("/proc/sysrq-trigger", os.O_WRONLY | os.O_TRUNC)  # writes nothing
