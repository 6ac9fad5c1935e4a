# what: a hundred inotify instances
# stops: using up the user's quota
# row: privileges
# outside: ok
# inside: EMFILE
# landlock: ok (not stopped: it is the user's limit)
# unproven: EMFILE (a user who has used them up)
# own: yes

from lib.probe import *

with act():
    for _ in range(100):
        call("inotify_init1", 0)
