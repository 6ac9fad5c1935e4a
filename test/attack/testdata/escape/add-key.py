# what: add_key
# stops: CVE-2016-0728; filling the user's quota of keys
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("add_key", b"user", b"tegmen-test", b"x", 1, -2)  # the process keyring
