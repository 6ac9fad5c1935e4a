# what: chroot
# stops: leaving the root by a directory outside it
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    call("chroot", b"/usr")
