# what: what /dev/null is
# stops: CVE-2025-31133: masking with a /dev/null that is something else
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
