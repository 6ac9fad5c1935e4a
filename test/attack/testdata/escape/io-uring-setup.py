# what: io_uring_setup
# stops: io_uring, which no filter looks into (CVE-2022-29582, CVE-2023-2598)
# row: kernel interfaces
# outside: ok
# inside: ENOSYS
# landlock: ENOSYS
# unproven: EPERM (kernel.io_uring_disabled)

from lib.probe import *

with act():
    os.close(call("io_uring_setup", 1, ctypes.create_string_buffer(120)))
