# what: /sys
# stops: devices, firmware, settings of the kernel
# row: devices, /proc and /sys
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    os.listdir("/sys/class")
