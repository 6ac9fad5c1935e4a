# what: AF_PPPOX: PPPoE, PPPoL2TP
# stops: CVE-2014-4943
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(24, socket.SOCK_STREAM)
