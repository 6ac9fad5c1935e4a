# what: mknod: a character device of number 0:0, which anyone may make
# stops: devices in a file system that is shared
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("mknodat", AT_FDCWD, temporary("whiteout").encode(), 0o020600, 0)
    os.unlink(temporary("whiteout"))
