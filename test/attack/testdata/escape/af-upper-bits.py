# what: AF_ALG, AF_VSOCK with garbage in the upper half of the number
# stops: filters that compare 64 bits where the kernel uses 32
# row: sockets
# outside: ok EINVAL
# inside: EAFNOSUPPORT
# landlock: EPERM

from lib.probe import *

families(UPPER | 38, UPPER | 40)
