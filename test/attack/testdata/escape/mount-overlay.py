# what: mount: an overlay
# stops: CVE-2021-3493, CVE-2023-0386, CVE-2023-2640, CVE-2023-32629
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNS)
with act():
    options = f"lowerdir=/usr/bin:/usr/lib".encode()
    call("mount", b"none", b"/tmp", b"overlay", 0, options)
