# what: inherited descriptors
# stops: CVE-2024-21626, CVE-2016-9962; go-judge's leaks between forks
# row: files
# outside: ok
# inside: none
# landlock: none

from lib.probe import *

with act():
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # that of the list itself
            os.fstat(fd)
            if fd > 2:
                break
    else:
        raise Word("none")
