# what: AF_SMC
# stops: bugs of a rare family
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(43, socket.SOCK_STREAM)
