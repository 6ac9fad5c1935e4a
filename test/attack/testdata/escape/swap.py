# what: swapon, swapoff of a missing file
# stops: reading what was swapped out
# row: kernel entry
# outside: EPERM (take root)
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

calls("swapon", "swapoff", args=(b"/nonesuch", 0))
