# what: fanotify_init for file identifiers
# stops: watching files of the host
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM
# unproven: EPERM (a kernel before 5.13)

from lib.probe import *

with act():
    os.close(call("fanotify_init", 0x200, 0))
