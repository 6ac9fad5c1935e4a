# what: AF_BLUETOOTH
# stops: CVE-2021-3573
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(31, socket.SOCK_RAW)
