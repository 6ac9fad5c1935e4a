# what: multicast and broadcast
# stops: services found on the local network
# row: services of the host
# outside: ok EACCES
# inside: ENETUNREACH
# landlock: EPERM
# unproven: ENETUNREACH (a host without a network)

from lib.probe import *

def send(address):
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.connect((address, 9))  # sends nothing

each(multicast=lambda: send("224.0.0.251"), broadcast=lambda: send("255.255.255.255"))
