# what: system calls that no program needs any more
# stops: old code that nobody looks at
# row: kernel entry
# outside: ENOSYS EPERM EINVAL EFAULT
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

calls("create_module", "get_kernel_syms", "query_module", "nfsservctl", "uselib", "lookup_dcookie", "_sysctl", "afs_syscall")
