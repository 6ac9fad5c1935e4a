# what: socketpair of a family other than AF_UNIX
# stops: rare families by another call
# row: sockets
# outside: ok EOPNOTSUPP EINVAL (a family is known before its type is refused)
# inside: EAFNOSUPPORT
# landlock: EAFNOSUPPORT

from lib.probe import *

pair = (ctypes.c_int * 2)()
each(inet=lambda: call("socketpair", 2, 1, 0, pair), vsock=lambda: call("socketpair", 40, 15, 0, pair), tipc=lambda: call("socketpair", 30, 15, 0, pair))
