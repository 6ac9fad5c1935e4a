# what: mount: a bind of a directory
# stops: hiding files that others rely on
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    call("mount", b"/usr", b"/tmp", 0, 0x1000, 0)
