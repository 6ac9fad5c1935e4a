# what: a link made by the guest
# stops: CVE-2026-39861
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

link = temporary("made-link")
with act():
    os.symlink(host("SECRET"), link)
    try:
        opened(link)
    finally:
        os.unlink(link)
