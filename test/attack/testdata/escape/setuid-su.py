# what: su: the privileges it runs with
# stops: CVE-2020-5291; flawed setuid programs (CVE-2021-4034)
# row: privileges
# outside: ok
# unproven: powerless (a file system without setuid)
# inside: powerless
# landlock: powerless EACCES
# needs: su

from lib.probe import *

import subprocess
with act():
    su = subprocess.Popen(["su"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # waits for a password
    try:
        while status("Name", su.pid) != ["su"] and su.poll() is None:
            pass
        if su.poll() is not None or status("Uid", su.pid)[1] != "0":
            raise Word("powerless")
    finally:
        su.stdin.close()
        su.wait()
