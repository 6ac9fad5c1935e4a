# what: quotactl, quotactl_fd
# stops: quotas of the host's file systems
# row: kernel interfaces
# outside: ok EBADF ENODEV ENOSYS
# inside: EPERM
# landlock: EPERM

from lib.probe import *

each(quotactl=lambda: call("quotactl", 0x80000100, 0, 0, 0),  # Q_SYNC
     quotactl_fd=lambda: call("quotactl_fd", -1, 0, 0, 0))
