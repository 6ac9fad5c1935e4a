# what: /dev/mem, /dev/kmem, /dev/port
# stops: the machine's memory
# row: devices, /proc and /sys
# outside: EACCES ENOENT (take root)
# inside: ENOENT
# landlock: EACCES ENOENT
# same: a host may have none, or refuse everyone but root

from lib.probe import *

each(**{n: lambda n=n: opened("/dev/" + n) for n in ("mem", "kmem", "port")})
