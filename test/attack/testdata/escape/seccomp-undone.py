# what: a seccomp filter of the guest that allows everything, then a forbidden call
# stops: undoing the filter
# row: kernel interfaces
# outside: ok ENOKEY
# inside: EPERM
# landlock: EPERM

from lib.probe import *

class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

allow = struct.pack("HBBI", 6, 0, 0, 0x7FFF0000)
with act():
    call("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    call("seccomp", 1, 0, ctypes.byref(Program(1, allow)))
    call("request_key", b"user", b"tegmen-test-nonesuch", 0, 0)
