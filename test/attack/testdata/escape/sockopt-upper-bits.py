# what: UDP_ENCAP with garbage in the upper half of the option
# stops: filters that compare 64 bits where the kernel uses 32
# row: sockets
# outside: EINVAL
# inside: ENOPROTOOPT
# landlock: EPERM

from lib.probe import *

with act():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        call("setsockopt", s.fileno(), UPPER | 17, UPPER | 100, b"", 0)
