# what: lsm_get_self_attr, lsm_set_self_attr, lsm_list_modules
# stops: reading or changing the machine's security modules
# row: kernel interfaces
# outside: EINVAL EFAULT ENOSYS (a kernel before 6.8)
# inside: EPERM
# landlock: EPERM

from lib.probe import *

calls("lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules")
