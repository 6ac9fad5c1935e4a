# what: shmat: a segment of the host by its id
# stops: memory shared with programs of the host
# row: IPC
# outside: ok
# inside: EINVAL EIDRM
# landlock: EPERM

from lib.probe import *

with act():
    call("shmat", int(host("SHM")), 0, 0o10000)
