# what: open_tree_attr
# stops: detached mounts, by the newest call
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM
# unproven: ENOSYS (a kernel before 6.15)

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    attr = struct.pack("4Q", 1, 0, 0, 0)  # read-only
    os.close(call("open_tree_attr", AT_FDCWD, b"/usr", 1, attr, len(attr)))
