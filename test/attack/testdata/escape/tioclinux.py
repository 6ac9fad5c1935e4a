# what: TIOCLINUX: pasting into a console
# stops: bubblewrap PR#150
# row: terminals
# outside: ENOTTY
# inside: EPERM
# landlock: EPERM
# needs: own-terminal

from lib.probe import *

with act():
    call("ioctl", 0, TIOCLINUX, b"\3")
