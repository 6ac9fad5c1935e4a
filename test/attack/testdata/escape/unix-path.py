# what: connecting to a Unix socket by its path
# stops: docker.sock, the session bus, systemd's private socket
# row: services of the host
# outside: ok
# inside: ENOENT
# landlock: EPERM

from lib.probe import *

with act():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(host("SOCKET"))
