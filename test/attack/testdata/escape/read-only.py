# what: writing to what was mounted read-only
# stops: boxlite: read-only kept by the guest's side only
# row: files
# outside: ok
# inside: EROFS
# landlock: EACCES

from lib.probe import *

with act():
    opened(os.path.join(host("READONLY"), "file"), os.O_WRONLY)
