# what: the mode and the times of a file of the host that belongs to the account
# stops: a private key that others can then read
# row: files
# outside: ok
# inside: ENOENT
# landlock: EPERM

from lib.probe import *

each(mode=lambda: os.chmod(host("SECRET"), 0o644), times=lambda: os.utime(host("SECRET")))
