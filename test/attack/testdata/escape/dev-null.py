# what: the type of /dev/null
# stops: CVE-2025-31133: masking with a fake /dev/null
# row: devices, /proc and /sys
# outside: device
# inside: device
# landlock: device
# same: it has to be the device everywhere

from lib.probe import *

with act():
    null, info = os.stat("/dev/null"), os.makedev(1, 3)
    if null.st_rdev == info and not read("/dev/null"):
        raise Word("device")
