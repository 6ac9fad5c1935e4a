# what: a file in the host's /tmp
# stops: files that other programs leave there
# row: IPC
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    opened(host("TMP_FILE"))
