# what: /proc/PID/fd of a process of the host
# stops: CVE-2016-9962: descriptors of others
# row: processes
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    for fd in os.listdir(f"/proc/{host('PID')}/fd"):
        os.readlink(f"/proc/{host('PID')}/fd/{fd}")
