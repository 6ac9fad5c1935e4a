# what: mq_open: a POSIX queue of the host
# stops: reading messages of the host
# row: IPC
# outside: ok
# inside: ENOENT
# landlock: EPERM

from lib.probe import *

with act():
    os.close(call("mq_open", host("QUEUE").encode(), os.O_RDWR, 0, 0))
