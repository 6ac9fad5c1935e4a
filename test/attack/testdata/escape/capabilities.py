# what: a capability in any of the five sets
# stops: CVE-2022-29162, CVE-2022-24769, CVE-2022-27650; CAP_NET_ADMIN for CVE-2024-1086
# row: privileges
# outside: ok
# inside: none
# landlock: ok none (not stopped: an ordinary user cannot empty the bounding set, which is of no use to a guest)

from lib.probe import *

with act():
    if not any(int(status(s)[0], 16) for s in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")):
        raise Word("none")
