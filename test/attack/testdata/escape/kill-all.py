# what: a signal to everyone
# stops: ending or stopping programs of the host
# row: processes
# outside: ok
# inside: ESRCH
# landlock: ok EPERM (reaches the sandbox's own processes only)
# own: yes

from lib.probe import *

with act():
    os.kill(-1, 0)
