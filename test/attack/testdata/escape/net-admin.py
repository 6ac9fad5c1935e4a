# what: taking the loopback interface down
# stops: changing the network; kernel code behind CAP_NET_ADMIN
# row: sockets
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNET)
with act():
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", b"lo", 0))  # SIOCSIFFLAGS
