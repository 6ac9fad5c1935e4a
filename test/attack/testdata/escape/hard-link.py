# what: a hard link to a file of the host
# stops: files that change owner when they are moved
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES EXDEV

from lib.probe import *

link = os.path.join(host("WORKSPACE"), "hard-link")
with act():
    os.link(host("SECRET"), link)
    os.unlink(link)
