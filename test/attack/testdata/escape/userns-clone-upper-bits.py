# what: clone: a user namespace, with garbage in the upper half of the flags
# stops: filters that compare 64 bits where the kernel uses 32
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    if call("clone", UPPER | CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)
    os.wait()
