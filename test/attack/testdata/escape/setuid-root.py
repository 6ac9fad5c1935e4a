# what: a setuid program of root
# stops: CVE-2020-5291; flawed setuid programs (CVE-2021-4034)
# row: privileges
# outside: ok
# unproven: powerless (a file system without setuid)
# inside: powerless
# landlock: powerless EACCES
# needs: root

from lib.probe import *

with act():
    import subprocess
    if subprocess.run([os.path.join(host("PRIVILEGED"), "setuid"), "-S", "-c", "import os, sys; sys.exit(os.geteuid() == 0)"]).returncode == 0:
        raise Word("powerless")
