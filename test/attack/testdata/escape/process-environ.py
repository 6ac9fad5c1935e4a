# what: /proc/PID/environ of a process of the host
# stops: tokens in the environment
# row: processes
# outside: ok
# inside: ENOENT
# landlock: EACCES EPERM

from lib.probe import *

with act():
    read(f"/proc/{host('PID')}/environ")
