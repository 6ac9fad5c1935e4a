# what: process_vm_readv, process_vm_writev of the process's own memory
# stops: the memory of others
# row: processes
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

here = ctypes.create_string_buffer(8)
iov = struct.pack("PN", ctypes.addressof(here), 8)
each(**{c: lambda c=c: call(c, os.getpid(), iov, 1, iov, 1, 0) for c in ("process_vm_readv", "process_vm_writev")})
