# what: clone3 without any namespace
# stops: flags in memory, where no filter sees them; libraries fall back to clone
# row: namespaces and mounts
# outside: ok
# inside: ENOSYS
# landlock: ENOSYS

from lib.probe import *

with act():
    args = struct.pack("8Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    if call("clone3", args, len(args)) == 0:
        os._exit(0)
    os.wait()
