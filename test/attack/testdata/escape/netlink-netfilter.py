# what: NETLINK_NETFILTER
# stops: CVE-2021-22555, CVE-2024-1086, CVE-2026-23111
# row: sockets
# outside: ok ESOCKTNOSUPPORT (a kernel without it)
# inside: EPROTONOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(16, socket.SOCK_RAW, 12, unknown=socket.SOCK_STREAM)
