# what: move_mount of a mount
# stops: rearranging the tree
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)

with act():
    fd = -1
    with contextlib.suppress(OSError):
        fd = call("open_tree", AT_FDCWD, b"/usr", 1)
    call("move_mount", fd, b"", AT_FDCWD, b"/tmp", 4)
