# what: statmount, listmount from nowhere
# stops: what is mounted where on the host
# row: namespaces and mounts
# outside: EFAULT ENOSYS (a kernel before 6.8) EINVAL
# inside: EPERM
# landlock: EPERM

from lib.probe import *

calls("statmount", "listmount")
