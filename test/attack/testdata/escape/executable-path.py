# what: writing to the executable of a process, by its path
# stops: CVE-2019-5736: the launcher overwritten
# row: processes
# outside: ETXTBSY
# inside: ENOENT
# landlock: EACCES ETXTBSY

from lib.probe import *

with act():
    opened(host("EXE"), os.O_WRONLY)
