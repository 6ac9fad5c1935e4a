# what: the mode, times and attributes of files on a read-only mount
# stops: read-only for contents only
# row: files
# outside: ok
# inside: EROFS
# landlock: EPERM
# unproven: EOPNOTSUPP (a file system without attributes)

from lib.probe import *

path = os.path.join(host("READONLY"), "file")
each(mode=lambda: os.chmod(path, 0o644), times=lambda: os.utime(path), xattr=lambda: os.setxattr(path, "user.tegmen", b"x"))
