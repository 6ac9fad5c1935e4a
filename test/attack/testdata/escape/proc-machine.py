# what: /proc/interrupts
# stops: timing what others type
# row: devices, /proc and /sys
# outside: ok
# inside: empty
# landlock: ok (not stopped: /proc is the host's)
# unproven: EACCES ENOENT (a host that hides it)

from lib.probe import *

with act():
    if not read("/proc/interrupts"):
        raise Word("empty")
