# what: a file of the host from each descriptor, upwards
# stops: CVE-2024-21626: a leaked directory
# row: files
# outside: ok
# inside: ENOENT ENOTDIR
# landlock: EACCES ENOTDIR

from lib.probe import *

with act():
    os.open("/", os.O_RDONLY)
    refused = None
    for fd in os.listdir("/proc/self/fd"):
        try:
            opened(f"/proc/self/fd/{fd}/" + "../" * 9 + host("SECRET"))
            break
        except OSError as e:
            if e.errno != errno.ENOTDIR:
                refused = e
    else:
        raise refused
