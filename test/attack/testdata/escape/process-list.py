# what: a process of the host in /proc
# stops: learning what runs, with its arguments
# row: processes
# outside: ok
# inside: ENOENT
# landlock: ok (not stopped: /proc is the host's)

from lib.probe import *

with act():
    read(f"/proc/{host('PID')}/cmdline")
