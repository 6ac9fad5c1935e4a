# what: /proc/kcore
# stops: the machine's memory
# row: devices, /proc and /sys
# outside: EACCES (takes root)
# inside: empty ENOENT
# landlock: EACCES ENOENT
# unproven: ENOENT (a kernel without it)

from lib.probe import *

with act():
    if not os.path.getsize("/proc/kcore") and not read("/proc/kcore"):
        raise Word("empty")
    opened("/proc/kcore")
