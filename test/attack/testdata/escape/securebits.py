# what: securebits
# stops: restoring the privileges of root
# row: privileges
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns()
with act():
    call("prctl", 28, 0, 0, 0, 0)  # PR_SET_SECUREBITS
