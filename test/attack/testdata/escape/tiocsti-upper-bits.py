# what: TIOCSTI with garbage in the upper half of the number
# stops: CVE-2019-10063: filters that compare 64 bits where the kernel uses 32
# row: terminals
# outside: ok
# inside: EPERM
# landlock: EPERM
# needs: own-terminal
# unproven: EIO (dev.tty.legacy_tiocsti is 0)

from lib.probe import *

with act():
    call("ioctl", 0, UPPER | TIOCSTI, b"x")
