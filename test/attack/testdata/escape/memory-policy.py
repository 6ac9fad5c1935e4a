# what: set_mempolicy, mbind, migrate_pages, move_pages
# stops: moving the memory of others; rarely used code
# row: kernel interfaces
# outside: ok EINVAL ENOSYS (a kernel without NUMA)
# inside: EPERM
# landlock: EPERM

from lib.probe import *

calls("set_mempolicy", "mbind", "migrate_pages", "move_pages", "set_mempolicy_home_node", args=(0, 0, 0, 0, 0, 0))
