# what: setns into the process's own namespace
# stops: re-entering a namespace through a descriptor
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNET)
with act():
    fd = os.open("/proc/self/ns/net", os.O_RDONLY)
    call("setns", fd, 0)
