# what: writing to the executable of a process, /proc/PID/exe
# stops: CVE-2019-5736: the launcher overwritten
# row: processes
# outside: ETXTBSY
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    opened(f"/proc/{host('PID')}/exe", os.O_WRONLY)
