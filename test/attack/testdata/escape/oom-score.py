# what: the oom_score_adj of a process of the host
# stops: having a program of the host killed when memory runs out
# row: processes
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    with open(f"/proc/{host('PID')}/oom_score_adj", "r+") as f:
        f.write(f.read().strip())
