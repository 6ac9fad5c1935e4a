# what: msgget: a queue of the host by its key
# stops: reading messages of the host
# row: IPC
# outside: ok
# inside: ENOENT
# landlock: EPERM

from lib.probe import *

with act():
    call("msgget", int(host("KEY")), 0)
