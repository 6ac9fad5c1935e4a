# what: statmount, listmount with an invalid address
# stops: learning the host's mounts
# row: namespaces and mounts
# outside: EFAULT ENOSYS (a kernel before 6.8) EINVAL
# inside: EPERM
# landlock: EPERM

from lib.probe import *

calls("statmount", "listmount")
