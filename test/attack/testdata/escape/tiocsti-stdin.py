# what: TIOCSTI: pushing keys into the host's terminal, given as standard input
# stops: CVE-2017-5226, CVE-2016-9016, CVE-2016-7545
# row: terminals
# outside: ok
# inside: EPERM
# landlock: EPERM
# needs: terminal
# unproven: EIO (dev.tty.legacy_tiocsti is 0)

from lib.probe import *

with act():
    fcntl.ioctl(0, TIOCSTI, b"x")
