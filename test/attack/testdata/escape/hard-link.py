# what: a hard link to a file of the host
# stops: files that change their owner when they are put away
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES EXDEV

from lib.probe import *

link = os.path.join(host("WORKSPACE"), "hard-link")
with act():
    os.link(host("SECRET"), link)
    os.unlink(link)
