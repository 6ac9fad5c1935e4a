# what: /proc/PID/cwd of a process of the host
# stops: the host's files by another name
# row: processes
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    opened(f"/proc/{host('PID')}/cwd/.")
