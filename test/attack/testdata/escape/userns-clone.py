# what: clone: a user namespace
# stops: CVE-2022-0185, CVE-2024-1086
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    if call("clone", CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)
    os.wait()
