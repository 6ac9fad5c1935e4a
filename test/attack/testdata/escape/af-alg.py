# what: AF_ALG: the kernel's ciphers
# stops: CVE-2026-31431 (Copy Fail)
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(38, socket.SOCK_SEQPACKET)
