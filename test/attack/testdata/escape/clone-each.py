# what: clone: every other kind of namespace
# stops: CVE-2022-0492, CVE-2021-22555
# row: namespaces and mounts
# outside: ok
# inside: EPERM
# landlock: EPERM

from lib.probe import *

def clone(flag):
    if call("clone", flag | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)
    os.wait()

userns()
flags = dict(mnt=CLONE_NEWNS, net=CLONE_NEWNET, ipc=CLONE_NEWIPC, uts=CLONE_NEWUTS, pid=CLONE_NEWPID, cgroup=CLONE_NEWCGROUP)
each(**{name: lambda flag=flag: clone(flag) for name, flag in flags.items()})
