# what: the uid map and gid map of the user namespace
# stops: CVE-2018-18955
# row: devices, /proc and /sys
# outside: EPERM EACCES (written once only)
# inside: EPERM EACCES
# landlock: EPERM EACCES
# same: who has no capability is refused everywhere; that guests have none is the point

from lib.probe import *

def write(name, text):
    with open("/proc/self/" + name, "w") as f:
        f.write(text)

each(uid_map=lambda: write("uid_map", "0 0 1\n"), gid_map=lambda: write("gid_map", "0 0 1\n"))
