# what: /proc/PID/mem of a process of the host
# stops: CVE-2016-8659: the memory of the launcher
# row: processes
# outside: ok
# inside: ENOENT
# landlock: EACCES EPERM

from lib.probe import *

with act():
    opened(f"/proc/{host('PID')}/mem", os.O_RDWR)
