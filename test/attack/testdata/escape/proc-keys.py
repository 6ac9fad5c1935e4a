# what: /proc/keys
# stops: keys of the host's users
# row: devices, /proc and /sys
# outside: ok
# inside: empty
# landlock: empty ok (not stopped: the keys that the user may see)
# unproven: ENOENT (a kernel without keys)

from lib.probe import *

with act():
    if not read("/proc/keys"):
        raise Word("empty")
