# what: pivot_root
# stops: leaving the root
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)

with act():
    with contextlib.suppress(OSError):
        call("mount", b"none", b"/tmp", b"tmpfs", 0, 0)
    os.chdir("/tmp")
    call("pivot_root", b".", b".")
