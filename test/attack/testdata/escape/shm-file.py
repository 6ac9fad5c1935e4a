# what: a file in the host's /dev/shm
# stops: memory shared with programs of the host
# row: IPC
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    opened(host("SHM_FILE"))
