"""What the cases share: an act, and the one word for how it ended.

A case prints "ok" when its act worked, the name of the errno when it was
refused, or a word of its own. It runs outside and inside; what it acts on is
named in the environment by the harness, or by lib/host.py.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import signal
import socket
import struct
import sys

AMD64 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)

# name: (amd64, arm64); one number where they agree, None where there is no such call
NUMBERS = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "afs_syscall": (183, None), "bpf": (321, 280),
    "capset": (126, 91), "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112),
    "clone": (56, 220), "clone3": 435, "create_module": (174, None), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "finit_module": (313, 273), "fsconfig": 431, "fsmount": 432, "fsopen": 430,
    "fspick": 433, "get_kernel_syms": (177, None), "getpid": (39, 172), "init_module": (175, 105),
    "inotify_init1": (294, 26), "io_uring_enter": 426, "io_uring_register": 427, "io_uring_setup": 425,
    "ioctl": (16, 29), "ioperm": (173, None), "iopl": (172, None), "ioprio_set": (251, 30), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219), "listmount": 458,
    "lookup_dcookie": (212, 18), "lsm_get_self_attr": 459, "lsm_list_modules": 461, "lsm_set_self_attr": 460,
    "mbind": (237, 235), "migrate_pages": (256, 238), "mknodat": (259, 33), "mount": (165, 40),
    "mount_setattr": 442, "move_mount": 429, "move_pages": (279, 239), "mq_open": (240, 180), "mq_unlink": (241, 181), "msgget": (68, 186),
    "name_to_handle_at": (303, 264), "nfsservctl": (180, 42), "open_by_handle_at": (304, 265), "openat": (257, 56), "open_tree": 428,
    "open_tree_attr": 467, "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": 438,
    "pidfd_open": 434, "pivot_root": (155, 41), "prctl": (157, 167), "prlimit64": (302, 261),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117),
    "query_module": (178, None), "quotactl": (179, 60), "quotactl_fd": 443, "reboot": (169, 142),
    "request_key": (249, 218), "seccomp": (317, 277), "semget": (64, 190), "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": 450, "setdomainname": (171, 162), "sethostname": (170, 161), "setns": (308, 268),
    "setsockopt": (54, 208), "settimeofday": (164, 170), "shmat": (30, 196), "shmget": (29, 194),
    "socket": (41, 198), "socketpair": (53, 199), "statmount": 457, "swapoff": (168, 225), "swapon": (167, 224),
    "syslog": (103, 116), "_sysctl": (156, None), "umount2": (166, 39), "unshare": (272, 97),
    "uselib": (134, None), "userfaultfd": (323, 282), "vhangup": (153, 58),
}

CLONE_PARENT, CLONE_NEWTIME, CLONE_NEWNS, CLONE_NEWCGROUP = 0x8000, 0x80, 0x20000, 0x2000000
CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
AT_FDCWD = -100
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
UPPER = 1 << 32  # garbage where the kernel looks at 32 bits only


class Word(Exception):
    """An outcome that no errno names."""


def number(name):
    n = NUMBERS[name]
    return n if isinstance(n, int) else n[0 if AMD64 else 1]


def raw(nr, *args):
    """A system call by number; the errno is an OSError."""
    args = [ctypes.c_ulong(a & (1 << 64) - 1) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(nr), *args)
    if r == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


def call(name, *args):
    return raw(number(name), *args)


def word_for(e):
    if isinstance(e, Word):
        return str(e)
    return "EOPNOTSUPP" if e.errno == errno.EOPNOTSUPP else errno.errorcode[e.errno]  # Python calls it ENOTSUP


@contextlib.contextmanager
def act():
    """The act, and the only line of output."""
    word = "ok"
    try:
        yield
    except (OSError, Word) as e:
        word = word_for(e)
    print(word, flush=True)
    os._exit(0)


def each(**acts):
    """Several acts, each in a process of its own: every word that came out."""
    words = set()
    for name, f in acts.items():
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            word = "ok"
            try:
                f()
            except (OSError, Word) as e:
                word = word_for(e)
            os.write(w, word.encode())
            os._exit(0)
        os.close(w)
        with open(r, "rb") as out:
            word = out.read().decode()
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            word = signal.Signals(os.WTERMSIG(status)).name
        print(name + ":", word, file=sys.stderr)
        words.add(word)
    print(*sorted(words), flush=True)
    os._exit(0)


def calls(*names, args=(0, 0, 0, 0)):
    """each, of system calls with arguments that do no harm; those of other architectures are left out."""
    each(**{n: lambda n=n: call(n, *args) for n in names if number(n) is not None})


def userns(flags=0):
    """As much privilege as anyone can get outside: that of a user namespace of one's own."""
    with contextlib.suppress(OSError):
        call("unshare", CLONE_NEWUSER | flags)


def family(af, kind=socket.SOCK_STREAM, protocol=0, unknown=15):
    """A socket. A kernel without its kind is asked again, so that it, and not the filter, complains about the type."""
    try:
        call("socket", af, kind, protocol)
    except OSError as e:
        if e.errno not in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT):
            raise
        call("socket", af, unknown, protocol)


def families(*afs):
    each(**{str(af): lambda af=af: family(af) for af in afs})


def host(name):
    """A thing of the host, which the harness has made."""
    return os.environ["HOST_" + name]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def opened(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags))


def run(*argv, **kw):
    """A program; that it found no such file is an OSError."""
    import subprocess
    p = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"}, **kw)
    if p.returncode == 0:
        return
    for e in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS):
        if os.strerror(e).removesuffix(" or directory") in p.stderr:
            raise OSError(e, p.stderr)
    raise Word("failed: " + p.stderr)


def temporary(name):
    return os.path.join(os.environ["TMPDIR"], name)


def status(field, pid="self"):
    for line in read(f"/proc/{pid}/status").decode().splitlines():
        if line.startswith(field + ":"):
            return line.split(":")[1].split()
    raise KeyError(field)
