# what: mknod: a character device, with garbage in the upper half of the mode
# stops: filters that compare more than the kernel uses
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("mknodat", AT_FDCWD, temporary("upper").encode(), 0o020600 | 1 << 16 | UPPER, 0)
    os.unlink(temporary("upper"))
