# what: init_module, finit_module, delete_module
# stops: loading code into the kernel
# row: kernel entry
# outside: EPERM ENOSYS (take root)
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

calls("init_module", "finit_module", "delete_module", args=(-1, 0, 0, 0))
