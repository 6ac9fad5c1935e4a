# what: AF_KEY: IPsec keys
# stops: CVE-2026-43284 (Dirty Frag), CVE-2026-46300 (Fragnesia)
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(15, socket.SOCK_RAW)
