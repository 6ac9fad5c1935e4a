# what: more locked memory than the limit
# stops: memory that cannot be swapped out
# row: privileges
# outside: ENOMEM EPERM EAGAIN (takes root)
# inside: ENOMEM EPERM EAGAIN
# landlock: ENOMEM EPERM EAGAIN
# same: the limit holds for everyone

from lib.probe import *

with act():
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if hard == resource.RLIM_INFINITY:
        raise Word("unlimited")
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    memory = mmap.mmap(-1, hard + mmap.PAGESIZE)
    if libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory))), ctypes.c_size_t(hard + mmap.PAGESIZE)):
        raise OSError(ctypes.get_errno(), "mlock")
