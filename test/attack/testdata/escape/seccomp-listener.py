# what: a seccomp filter of the guest with a listener
# stops: answering the calls of a locked-down program
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

allow = struct.pack("HBBI", 6, 0, 0, 0x7FFF0000)
with act():
    call("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    os.close(call("seccomp", 1, 8, ctypes.byref(Program(1, allow))))
