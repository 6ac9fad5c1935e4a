# what: mknod: the character device 0:0, which anyone may create
# stops: devices in a shared file system
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("mknodat", AT_FDCWD, temporary("whiteout").encode(), 0o020600, 0)
    os.unlink(temporary("whiteout"))
