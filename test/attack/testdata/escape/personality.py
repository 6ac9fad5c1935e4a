# what: personality: executable data, page zero, the legacy memory layout
# stops: disabling exploit mitigations
# row: kernel interfaces
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

each(READ_IMPLIES_EXEC=lambda: call("personality", 0x0400000), ADDR_COMPAT_LAYOUT=lambda: call("personality", 0x0200000),
     MMAP_PAGE_ZERO=lambda: call("personality", 0x0100000))
