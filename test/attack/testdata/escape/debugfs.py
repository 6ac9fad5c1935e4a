# what: /sys/kernel/debug, /sys/kernel/tracing, /sys/firmware
# stops: watching the kernel
# row: devices, /proc and /sys
# outside: EACCES ENOENT ok
# inside: ENOENT
# landlock: EACCES
# same: a host may have none of them

from lib.probe import *

each(**{n: lambda n=n: os.listdir("/sys/" + n) for n in ("kernel/debug", "kernel/tracing", "kernel/security", "firmware")})
