# what: iopl, ioperm: the machine's I/O ports
# stops: direct access to hardware
# row: kernel entry
# outside: ok EINVAL (no ports) ENOSYS (a kernel without them)
# inside: SIGSYS
# landlock: SIGSYS
# arch: amd64

from lib.probe import *

calls("iopl", "ioperm")
