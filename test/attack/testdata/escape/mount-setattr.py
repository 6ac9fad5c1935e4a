# what: mount_setattr of the root
# stops: undoing read-only, nosuid, nodev
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    attr = struct.pack("4Q", 1, 0, 0, 0)  # read-only
    call("mount_setattr", AT_FDCWD, b"/", 0, attr, len(attr))
