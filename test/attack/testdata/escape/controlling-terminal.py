# what: /dev/tty: the host's terminal
# stops: CVE-2017-5226; reading keys
# row: terminals
# outside: ok
# inside: ENXIO
# landlock: ENXIO EACCES
# needs: terminal

from lib.probe import *

with act():
    opened("/dev/tty", os.O_RDWR)
