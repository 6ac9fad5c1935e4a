# what: every other netlink protocol except the one for routes
# stops: CVE-2013-1763
# row: sockets
# outside: ok ESOCKTNOSUPPORT (a kernel without it)
# inside: EPROTONOSUPPORT
# landlock: EPERM

from lib.probe import *

each(**{str(p): lambda p=p: family(16, socket.SOCK_RAW, p, unknown=socket.SOCK_STREAM) for p in range(1, 24) if p not in (6, 12)})
