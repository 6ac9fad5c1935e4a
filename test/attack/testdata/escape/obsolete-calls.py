# what: obsolete system calls
# stops: old code that nobody reviews
# row: kernel entry
# outside: ENOSYS EPERM EINVAL EFAULT
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

calls("create_module", "get_kernel_syms", "query_module", "nfsservctl", "uselib", "lookup_dcookie", "_sysctl", "afs_syscall")
