# what: an ambient capability
# stops: CVE-2022-24769: capabilities that survive execve
# row: privileges
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns()
with act():
    header, data = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", 1 << 10, 1 << 10, 1 << 10, 0, 0, 0)  # CAP_NET_BIND_SERVICE
    call("capset", header, data)
    call("prctl", 47, 2, 10, 0, 0)  # PR_CAP_AMBIENT_RAISE
