# what: writing to a read-only mount
# stops: boxlite: read-only enforced by the guest's side only
# row: files
# outside: ok
# inside: EROFS
# landlock: EACCES

from lib.probe import *

with act():
    opened(os.path.join(host("READONLY"), "file"), os.O_WRONLY)
