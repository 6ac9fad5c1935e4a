# what: NETLINK_XFRM
# stops: CVE-2026-43284 (Dirty Frag), CVE-2026-46300 (Fragnesia)
# row: sockets
# outside: ok ESOCKTNOSUPPORT (a kernel without it)
# inside: EPROTONOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(16, socket.SOCK_RAW, 6, unknown=socket.SOCK_STREAM)
