# what: a setting of the kernel that a namespace's root may change
# stops: settings of the host
# row: devices, /proc and /sys
# outside: ok
# inside: EROFS EACCES
# landlock: EACCES

from lib.probe import *

userns(CLONE_NEWNET)
with act():
    opened("/proc/sys/net/ipv4/ip_forward", os.O_WRONLY)
