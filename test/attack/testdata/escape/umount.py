# what: umount2 of a mount point in the sandbox
# stops: uncovering masked files
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)

with act():
    with contextlib.suppress(OSError):
        call("mount", b"none", b"/tmp", b"tmpfs", 0, 0)
    call("umount2", b"/tmp", 2)
