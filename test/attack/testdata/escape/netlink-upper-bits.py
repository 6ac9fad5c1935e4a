# what: NETLINK_NETFILTER with garbage in the upper half of the number
# stops: filters that compare 64 bits where the kernel uses 32
# row: sockets
# outside: ok ESOCKTNOSUPPORT (a kernel without it)
# inside: EPROTONOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(16, socket.SOCK_RAW, UPPER | 12, unknown=socket.SOCK_STREAM)
