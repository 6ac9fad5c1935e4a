# what: creating a missing protected file
# stops: CVE-2026-25725: settings forged by the guest
# row: files
# outside: ok
# inside: EROFS
# landlock: EACCES

from lib.probe import *

path = os.path.join(host("READONLY"), "settings.json")
with act():
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    os.unlink(path)
