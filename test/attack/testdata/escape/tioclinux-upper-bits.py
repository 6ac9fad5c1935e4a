# what: TIOCLINUX with garbage in the upper half of the number
# stops: filters that compare 64 bits where the kernel uses 32
# row: terminals
# outside: ENOTTY
# inside: EPERM
# landlock: EPERM
# needs: own-terminal

from lib.probe import *

with act():
    call("ioctl", 0, UPPER | TIOCLINUX, b"\3")
