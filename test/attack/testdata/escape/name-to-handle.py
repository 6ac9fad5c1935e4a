# what: name_to_handle_at
# stops: Shocker's first half: a number for a file
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM
# unproven: EOPNOTSUPP (a file system without handles)

from lib.probe import *

with act():
    handle = ctypes.create_string_buffer(struct.pack("I", 128), 136)
    call("name_to_handle_at", AT_FDCWD, b"/usr", handle, ctypes.byref(ctypes.c_int()), 0)
