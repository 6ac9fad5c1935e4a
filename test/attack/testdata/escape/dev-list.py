# what: devices other than the harmless ones
# stops: disks, /dev/kvm, /dev/fuse
# row: devices, /proc and /sys
# outside: ok
# inside: none
# landlock: EACCES

from lib.probe import *

with act():
    harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "fd", "stdin", "stdout", "stderr", "console"}
    if set(os.listdir("/dev")) <= harmless:
        raise Word("none")
