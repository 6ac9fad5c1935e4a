# what: connecting to a TCP port of the host's loopback interface
# stops: databases and servers that trust local clients
# row: services of the host
# outside: ok
# inside: ECONNREFUSED
# landlock: EPERM

from lib.probe import *

with act():
    with socket.socket() as s:
        s.connect(("127.0.0.1", int(host("TCP"))))
