# what: connecting to a TCP port of the host's loopback interface by IPv6
# stops: databases and servers that trust local clients
# row: services of the host
# outside: ok
# inside: ECONNREFUSED EADDRNOTAVAIL
# landlock: EPERM
# needs: ipv6

from lib.probe import *

with act():
    with socket.socket(socket.AF_INET6) as s:
        s.connect(("::1", int(host("TCP6"))))
