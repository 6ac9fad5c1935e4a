# what: setuid(0), setgid(0), setgroups
# stops: becoming root
# row: privileges
# outside: EPERM (take root)
# inside: EPERM EINVAL (the id is not mapped)
# landlock: EPERM
# same: an ordinary user is refused everywhere; that guests are one is the point

from lib.probe import *

each(uid=lambda: os.setuid(0), gid=lambda: os.setgid(0), groups=lambda: os.setgroups([0]))
