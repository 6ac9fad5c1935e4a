# what: open_by_handle_at with an invalid handle
# stops: Shocker: files by their number, past all paths
# row: kernel interfaces
# outside: EFAULT EBADF (by kernel)
# unproven: EPERM (an older kernel asks for the capability first)
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("open_by_handle_at", -1, 0, 0)
