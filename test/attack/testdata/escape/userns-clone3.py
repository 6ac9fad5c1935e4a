# what: clone3: a user namespace
# stops: flags in memory, where no filter sees them
# row: namespaces and mounts
# outside: ok
# inside: ENOSYS
# landlock: ENOSYS

from lib.probe import *

with act():
    args = struct.pack("8Q", CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    if call("clone3", args, len(args)) == 0:
        os._exit(0)
    os.wait()
