# what: settimeofday, clock_settime with an invalid address; clock_adjtime, adjtimex
# stops: changing the machine's time
# row: kernel interfaces
# outside: ok EFAULT
# inside: EPERM
# landlock: EPERM

from lib.probe import *

buffer = ctypes.create_string_buffer(208)  # a timex that only asks
each(settimeofday=lambda: call("settimeofday", 1, 0), clock_settime=lambda: call("clock_settime", 0, 0),
     adjtimex=lambda: call("adjtimex", buffer), clock_adjtime=lambda: call("clock_adjtime", 0, buffer))
