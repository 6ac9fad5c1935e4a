# what: /sys/fs/cgroup
# stops: limits that can be changed from inside (CVE-2023-25809)
# row: devices, /proc and /sys
# outside: ok
# inside: ENOENT
# landlock: EACCES
# unproven: ENOENT (a host without cgroups)

from lib.probe import *

with act():
    os.listdir("/sys/fs/cgroup")
