# what: connecting to a TCP port of the host through 0.0.0.0
# stops: filters that know 127.0.0.1 only
# row: services of the host
# outside: ok
# inside: ECONNREFUSED
# landlock: EPERM

from lib.probe import *

with act():
    with socket.socket() as s:
        s.connect(("0.0.0.0", int(host("TCP"))))
