# what: /sys/fs/cgroup, where a guest finds copies of its limits and no cgroup
# stops: limits that can be changed from inside (CVE-2023-25809)
# row: devices, /proc and /sys
# outside: ok
# inside: ENOENT
# landlock: EACCES
# unproven: ENOENT (a host without cgroups)

from lib.probe import *

def fail(err):
    raise err

with act():
    for directory, _, files in os.walk("/sys/fs/cgroup", onerror=fail):
        if "cgroup.procs" in files:
            open(directory + "/cgroup.procs").close()
            break
    else:
        raise FileNotFoundError(errno.ENOENT, "no cgroup")
