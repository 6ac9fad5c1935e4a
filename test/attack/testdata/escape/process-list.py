# what: a process of the host in /proc
# stops: learning what runs, with its arguments
# row: processes
# outside: ok
# inside: ENOENT
# landlock: ok (not stopped: the host's /proc is what there is)

from lib.probe import *

with act():
    read(f"/proc/{host('PID')}/cmdline")
