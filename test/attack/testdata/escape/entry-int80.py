# what: the 32-bit system call entry from a 64-bit program
# stops: filters that check only one table of system calls
# row: kernel entry
# outside: ok
# inside: SIGSYS
# landlock: SIGSYS
# arch: amd64
# unproven: SIGSEGV (a kernel without 32-bit programs)

from lib.probe import *

code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b814000000 cd80 c3"))  # mov $20,%eax (getpid); int $0x80; ret
with act():
    pid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    if pid != os.getpid():
        raise Word("wrong")
