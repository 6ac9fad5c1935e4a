# what: shmget: a segment of the host by its key
# stops: memory shared with programs of the host
# row: IPC
# outside: ok
# inside: ENOENT
# landlock: EPERM

from lib.probe import *

with act():
    call("shmget", int(host("KEY")), 0, 0)
