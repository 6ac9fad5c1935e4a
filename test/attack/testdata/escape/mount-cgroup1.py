# what: mount: a version 1 cgroup hierarchy
# stops: CVE-2022-0492: release_agent
# row: namespaces and mounts
# outside: ok EBUSY ENOENT EINVAL
# inside: EPERM
# landlock: EPERM
# unproven: EPERM ENODEV (a kernel without version 1)

from lib.probe import *

userns(CLONE_NEWNS | CLONE_NEWCGROUP)
with act():
    call("mount", b"none", b"/tmp", b"cgroup", 0, b"memory")
