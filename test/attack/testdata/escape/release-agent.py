# what: a release_agent in a cgroup file system
# stops: CVE-2022-0492
# row: devices, /proc and /sys
# outside: EACCES (takes root)
# inside: ENOENT
# landlock: EACCES ENOENT
# unproven: ENOENT (a host without version 1)

from lib.probe import *

import glob
with act():
    found = glob.glob("/sys/fs/cgroup/*/release_agent") + ["/sys/fs/cgroup/release_agent"]
    opened(found[0], os.O_WRONLY)
