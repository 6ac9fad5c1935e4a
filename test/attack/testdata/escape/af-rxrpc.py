# what: AF_RXRPC
# stops: CVE-2026-43500
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(33, socket.SOCK_DGRAM)
