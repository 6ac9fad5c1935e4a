# what: writing to a read-only mount through a reopened descriptor
# stops: read-only by path only
# row: files
# outside: ok
# inside: EROFS
# landlock: EACCES

from lib.probe import *

with act():
    fd = os.open(os.path.join(host("READONLY"), "file"), os.O_RDONLY)
    opened(f"/proc/self/fd/{fd}", os.O_RDWR)
