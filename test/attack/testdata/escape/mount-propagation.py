# what: mount: making the root shared
# stops: mounts that propagate to the host
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    call("mount", b"none", b"/", 0, 0x4000 | 0x40000, 0)  # MS_REC, MS_PRIVATE
