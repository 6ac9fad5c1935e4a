# what: acct: process accounting
# stops: writing to files of the host by the kernel's hand
# row: kernel entry
# outside: EPERM ENOSYS (takes root)
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

with act():
    call("acct", b"/nonesuch")
