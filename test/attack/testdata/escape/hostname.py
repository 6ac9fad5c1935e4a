# what: sethostname, setdomainname
# stops: names that others see
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWUTS)
calls("sethostname", "setdomainname", args=(b"x", 1))
