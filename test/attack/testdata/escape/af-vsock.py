# what: AF_VSOCK: the hypervisor
# stops: services of the hypervisor; CVE-2021-26708
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

with act():
    family(40, socket.SOCK_STREAM)
