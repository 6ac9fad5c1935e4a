# what: real-time scheduling, a higher priority, a lower oom_score_adj
# stops: starving others
# row: privileges
# outside: EPERM EACCES (take root)
# inside: EPERM EACCES
# landlock: EPERM EACCES
# same: an ordinary user is refused everywhere; that guests are one is the point

from lib.probe import *

def oom():
    with open("/proc/self/oom_score_adj", "r+") as f:
        f.write(str(int(host("OOM")) - 1))  # less than what the host's have

each(fifo=lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), nice=lambda: os.setpriority(os.PRIO_PROCESS, 0, -5), oom=oom)
