# what: open_tree: a copy of a mount
# stops: detached mounts
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    os.close(call("open_tree", AT_FDCWD, b"/usr", 1))
