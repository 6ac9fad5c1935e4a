# what: fsconfig, fsmount without a descriptor
# stops: CVE-2022-0185
# row: namespaces and mounts
# outside: EBADF EINVAL (no descriptor)
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
calls("fsconfig", "fsmount", args=(-1, 0, 0, 0, 0))
