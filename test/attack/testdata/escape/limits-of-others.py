# what: prlimit of a process of the host
# stops: limits that make a program of the host fail
# row: processes
# outside: ok
# inside: ESRCH
# landlock: EPERM

from lib.probe import *

with act():
    call("prlimit64", int(host("PID")), 7, 0, ctypes.create_string_buffer(16))
