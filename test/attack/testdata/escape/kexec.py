# what: kexec_load, kexec_file_load
# stops: starting another kernel
# row: kernel entry
# outside: EPERM ENOSYS (take root)
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

calls("kexec_load", "kexec_file_load", args=(-1, 0, 0, 0))
