# what: keyctl: asking for a keyring
# stops: keys of the host's session
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("keyctl", 0, -3, 1)
