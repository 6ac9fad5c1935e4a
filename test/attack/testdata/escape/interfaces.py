# what: interfaces other than loopback
# stops: the host's network
# row: sockets
# outside: ok
# inside: none
# landlock: EPERM
# unproven: none (a host without a network)

from lib.probe import *

with act():
    if [name for _, name in socket.if_nameindex()] == ["lo"]:
        raise Word("none")
