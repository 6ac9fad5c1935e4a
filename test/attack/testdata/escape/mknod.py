# what: mknod: /dev/mem, a disk
# stops: the machine's memory and disks
# row: namespaces and mounts
# outside: EPERM (takes root)
# inside: EPERM
# landlock: EPERM
# same: it takes root everywhere; whiteout.py shows what guests are refused beyond that

from lib.probe import *

each(char=lambda: call("mknodat", AT_FDCWD, temporary("char").encode(), 0o020600, 1 << 8 | 1),
     block=lambda: call("mknodat", AT_FDCWD, temporary("block").encode(), 0o060600, 8 << 8))
