# what: setns into a namespace of one's own
# stops: coming back to a namespace by a descriptor
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNET)
with act():
    fd = os.open("/proc/self/ns/net", os.O_RDONLY)
    call("setns", fd, 0)
