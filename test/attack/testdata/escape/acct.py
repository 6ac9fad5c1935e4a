# what: acct: process accounting
# stops: having the kernel write to files of the host
# row: kernel entry
# outside: EPERM ENOSYS (takes root)
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

with act():
    call("acct", b"/nonesuch")
