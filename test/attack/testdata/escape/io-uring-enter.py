# what: io_uring_enter, io_uring_register without a ring
# stops: using a ring that was passed in
# row: kernel interfaces
# outside: EBADF EINVAL (no ring) EOPNOTSUPP
# inside: ENOSYS
# landlock: ENOSYS

from lib.probe import *

calls("io_uring_enter", "io_uring_register", args=(-1, 0, 0, 0, 0, 0))
