# what: mount: a new tmpfs
# stops: hiding files that others rely on
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    call("mount", b"none", b"/tmp", b"tmpfs", 0, 0)
