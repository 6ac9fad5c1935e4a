# what: a file of the host from /proc/self/root, upwards
# stops: Ona: /proc/self/root; leaving by ..
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    opened("/proc/self/root/../../.." + host("SECRET"))
