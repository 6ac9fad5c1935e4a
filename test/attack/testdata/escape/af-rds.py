# what: AF_RDS
# stops: CVE-2010-3904, CVE-2019-11815
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(21, socket.SOCK_SEQPACKET)
