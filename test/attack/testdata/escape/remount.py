# what: mount: the root, writable
# stops: undoing read-only
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM
# unproven: EPERM (what is locked in the host's mount)

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    call("mount", b"none", b"/", 0, 0x20 | 0x1000 | 0x200000, 0)  # MS_REMOUNT, MS_BIND, MS_RELATIME
