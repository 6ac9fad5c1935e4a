# what: a file of the host by its path
# stops: reading what was not given
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    opened(host("SECRET"))
