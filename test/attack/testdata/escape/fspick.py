# what: fspick of a mount
# stops: changing a mounted file system
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)

with act():
    with contextlib.suppress(OSError):
        call("mount", b"none", b"/tmp", b"tmpfs", 0, 0)
    os.close(call("fspick", AT_FDCWD, b"/tmp", 0))
