# what: a system call by its x32 number
# stops: CVE-2014-0038; filters that check only one table of system calls
# row: kernel entry
# outside: ok ENOSYS (few kernels have x32)
# inside: SIGSYS
# landlock: SIGSYS
# arch: amd64

from lib.probe import *

with act():
    raw(0x40000000 + number("getpid"))
