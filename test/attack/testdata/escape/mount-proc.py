# what: mount: a new proc
# stops: uncovering masked files in /proc
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS | CLONE_NEWPID)
with act():
    if (pid := os.fork()) == 0:  # the first in the pid namespace
        with act():
            call("mount", b"none", b"/tmp", b"proc", 0, 0)
    os.waitpid(pid, 0)
    os._exit(0)
