# what: raising the limit of core dumps
# stops: CVE-2022-4415: memory written where others read it
# row: privileges
# outside: ok
# inside: EPERM
# landlock: EPERM
# unproven: EPERM (a host with the limit at 0)

from lib.probe import *

with act():
    import resource
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard <= 1: # 1 is for no core, neither in a file nor to a program
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (4096, 4096))
        except ValueError as e:
            raise PermissionError(errno.EPERM, "core") from e
