# what: vhangup
# stops: disconnecting a terminal
# row: kernel interfaces
# outside: EPERM (takes root)
# inside: EPERM
# landlock: EPERM
# same: it takes root everywhere

from lib.probe import *

with act():
    call("vhangup")
