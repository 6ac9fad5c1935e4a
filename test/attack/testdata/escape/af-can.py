# what: AF_CAN
# stops: CVE-2021-34693
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(29, socket.SOCK_RAW)
