# what: connecting to an abstract Unix socket
# stops: CVE-2020-15257
# row: services of the host
# outside: ok
# inside: ECONNREFUSED
# landlock: EPERM

from lib.probe import *

with act():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + host("ABSTRACT"))
