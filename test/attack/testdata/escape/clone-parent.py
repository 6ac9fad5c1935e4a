# what: CLONE_PARENT: a child that its parent did not start
# stops: a zombie of the host process, which keeps the sandbox from ending
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM
# own: yes

from lib.probe import *

with act():
    if call("clone", CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)
