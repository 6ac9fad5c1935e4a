# what: a link in the workspace to the host's /etc
# stops: CVE-2026-39861: it leads to the sandbox's own
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES ENOENT
# unproven: ENOENT (a host without /etc/machine-id)

from lib.probe import *

with act():
    read(os.path.join(host("WORKSPACE"), "etc", "machine-id"))
