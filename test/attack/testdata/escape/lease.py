# what: a lease on a file that all sandboxes share
# stops: blocking whoever opens it
# row: files
# outside: EACCES (takes the owner)
# inside: EACCES
# landlock: EACCES
# same: who does not own the file is refused everywhere; that guests do not is the point

from lib.probe import *

with act():
    with open("/usr/bin/env", "rb") as f:
        fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
