# what: semget: semaphores of the host by their key
# stops: blocking programs of the host
# row: IPC
# outside: ok
# inside: ENOENT
# landlock: EPERM

from lib.probe import *

with act():
    call("semget", int(host("KEY")), 0, 0)
