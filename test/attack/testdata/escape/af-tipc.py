# what: AF_TIPC
# stops: CVE-2021-43267, CVE-2022-0435
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(30, socket.SOCK_RDM)
