# what: connecting to a Unix datagram socket by its path
# stops: the journal, notification sockets
# row: services of the host
# outside: ok
# inside: ENOENT
# landlock: EPERM

from lib.probe import *

with act():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.connect(host("DATAGRAM"))
