# what: writing to what was mounted read-only, by a descriptor that is reopened
# stops: read-only kept by the path only
# row: files
# outside: ok
# inside: EROFS
# landlock: EACCES

from lib.probe import *

with act():
    fd = os.open(os.path.join(host("READONLY"), "file"), os.O_RDONLY)
    opened(f"/proc/self/fd/{fd}", os.O_RDWR)
