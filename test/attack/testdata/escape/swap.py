# what: swapon, swapoff of a file that is not there
# stops: reading what was swapped out
# row: kernel entry
# outside: EPERM (take root)
# inside: SIGSYS
# landlock: SIGSYS

from lib.probe import *

calls("swapon", "swapoff", args=(b"/nonesuch", 0))
