# what: a link in the workspace to a file of the host
# stops: CVE-2026-39861, CVE-2025-55345, CVE-2024-42472
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    opened(os.path.join(host("WORKSPACE"), "link"))
