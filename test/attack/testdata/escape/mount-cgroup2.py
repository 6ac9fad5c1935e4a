# what: mount: cgroup2
# stops: limits that can be changed from inside (CVE-2023-25809)
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS | CLONE_NEWCGROUP)
with act():
    call("mount", b"none", b"/tmp", b"cgroup2", 0, 0)
