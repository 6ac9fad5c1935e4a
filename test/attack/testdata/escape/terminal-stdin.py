# what: the host's terminal as standard input
# stops: CVE-2017-5226; the terminal's settings
# row: terminals
# outside: ok
# inside: ENOTTY
# landlock: ENOTTY
# needs: terminal

from lib.probe import *

with act():
    fcntl.ioctl(0, 0x5401, bytes(64))  # TCGETS
