# what: /dev/fuse, /dev/net/tun
# stops: file systems and networks made by the guest
# row: devices, /proc and /sys
# outside: ok
# inside: ENOENT
# landlock: EACCES ENOENT
# unproven: ENOENT EACCES ENODEV (a host without them)

from lib.probe import *

each(fuse=lambda: opened("/dev/fuse", os.O_RDWR), tun=lambda: opened("/dev/net/tun", os.O_RDWR))
