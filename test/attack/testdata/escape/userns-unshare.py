# what: unshare: a user namespace
# stops: CVE-2022-0185, CVE-2023-0386, CVE-2021-3493, CVE-2023-2640: kernel code open to a namespace's root
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

with act():
    call("unshare", CLONE_NEWUSER)
