# what: UDP_ENCAP on a UDP socket, with an invalid length
# stops: CVE-2026-43284 (Dirty Frag)
# row: sockets
# outside: EINVAL
# inside: ENOPROTOOPT
# landlock: EPERM

from lib.probe import *

with act():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        call("setsockopt", s.fileno(), 17, 100, b"", 0)
