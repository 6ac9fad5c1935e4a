# what: /proc/PID/root of a process of the host
# stops: the host's files by another name (Ona)
# row: processes
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    opened(f"/proc/{host('PID')}/root/etc/passwd")
