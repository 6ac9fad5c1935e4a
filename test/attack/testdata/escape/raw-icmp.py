# what: a raw socket
# stops: reading and forging packets
# row: sockets
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNET)
with act():
    call("socket", 2, 3, 1)
