# what: every other family of sockets
# stops: kernel modules that are loaded on demand
# row: sockets
# outside: ok EINVAL EPERM ESOCKTNOSUPPORT
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

# all but UNIX, INET, INET6, NETLINK, and those with a case of their own
families(*(af for af in range(3, 46) if af not in (10, 15, 16, 17, 21, 24, 29, 30, 31, 33, 38, 40, 43, 44)))
