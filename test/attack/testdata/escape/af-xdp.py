# what: AF_XDP in a private network namespace
# stops: bugs of a rare family
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNET)
with act():
    family(44, socket.SOCK_RAW)
