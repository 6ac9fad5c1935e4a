# what: a route to 169.254.169.254
# stops: credentials from the cloud's metadata service
# row: services of the host
# outside: ok
# inside: ENETUNREACH
# landlock: EPERM
# unproven: ENETUNREACH (a host without a network)

from lib.probe import *

with act():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.connect(("169.254.169.254", 80))  # sends nothing
