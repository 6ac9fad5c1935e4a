# what: changing /proc/irq, /proc/bus, /proc/fs
# stops: settings of the machine
# row: devices, /proc and /sys
# outside: EPERM (takes root)
# inside: EROFS
# landlock: EPERM

from lib.probe import *

each(**{d: lambda d=d: os.chmod("/proc/" + d, 0o555) for d in ("irq", "bus", "fs") if os.path.isdir("/proc/" + d)})
