# what: AF_PACKET in a private network namespace
# stops: CVE-2016-8655, CVE-2017-7308, CVE-2020-14386
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNET)
with act():
    family(17, socket.SOCK_RAW)
