# what: a file of the host: os through a module that imports it
# stops: CVE-2025-5120: allowed modules lead to others
# row: code in a language's own sandbox
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    import random
    random._os.close(random._os.open(host("SECRET"), 0))
