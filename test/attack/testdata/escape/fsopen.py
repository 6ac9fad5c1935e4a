# what: fsopen
# stops: CVE-2022-0185
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    os.close(call("fsopen", b"tmpfs", 0))
