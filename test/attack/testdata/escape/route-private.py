# what: routes to 10/8, 172.16/12, 192.168/16 and the rest of the world
# stops: the host's network; sending out data
# row: services of the host
# outside: ok
# inside: ENETUNREACH
# landlock: EPERM
# unproven: ENETUNREACH (a host without a network)

from lib.probe import *

def route(address):
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.connect((address, 53))  # sends nothing

each(**{a: lambda a=a: route(a) for a in ("10.0.0.1", "172.16.0.1", "192.168.0.1", "192.0.2.1")})
