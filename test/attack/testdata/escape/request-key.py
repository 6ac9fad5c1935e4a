# what: request_key of a missing key
# stops: upcalls from the kernel to programs of the host
# row: kernel interfaces
# outside: ENOKEY
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("request_key", b"user", b"tegmen-test-nonesuch", 0, 0)
