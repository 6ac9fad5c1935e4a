# what: TIOCSTI: pushing keys into the guest's own terminal
# stops: CVE-2017-5226: what the terminal's other end does with them
# row: terminals
# outside: ok
# inside: EPERM
# landlock: EPERM
# needs: own-terminal
# unproven: EIO (dev.tty.legacy_tiocsti is 0)

from lib.probe import *

with act():
    fcntl.ioctl(0, TIOCSTI, b"x")
