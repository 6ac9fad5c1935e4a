# what: a file of the host from the working directory, upwards
# stops: CVE-2024-21626, CVE-2026-55686: a working directory outside
# row: files
# outside: ok
# inside: ENOENT
# landlock: EACCES

from lib.probe import *

with act():
    if os.getcwd().startswith("(unreachable)"):
        raise Word("outside")
    opened("../" * 20 + host("SECRET"))
