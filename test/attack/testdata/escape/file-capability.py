# what: a program with file capabilities
# stops: programs with capabilities
# row: privileges
# outside: ok
# unproven: powerless (a file system without setuid)
# inside: powerless
# landlock: EPERM powerless EACCES
# needs: root

from lib.probe import *

with act():
    import subprocess
    check = "import sys; sys.exit(any(l.startswith('CapEff') and int(l.split()[1], 16) for l in open('/proc/self/status')))"
    if subprocess.run([os.path.join(host("PRIVILEGED"), "capable"), "-S", "-c", check]).returncode == 0:
        raise Word("powerless")
