"""The host's side: things a guest must not reach, all of them open to the
account that guests have. Prints what they are as environment, one a line, and
an empty line; then, for each line of input, how often someone came.
"""

import os
import socket
import sys
import threading

from lib.probe import call, libc

home = sys.argv[1]
hits = 0
names = {"PID": os.getpid(), "EXE": os.readlink("/proc/self/exe")}
with open("/proc/self/oom_score_adj") as f:
    names["OOM"] = f.read().strip()


def serve(name, family, kind, address, named=None):
    s = socket.socket(family, kind)
    s.bind(address)
    names[name] = named or s.getsockname()[1]

    def loop():
        global hits
        while True:
            if kind == socket.SOCK_DGRAM:
                data, peer = s.recvfrom(512)
                s.sendto(data, peer)
            else:
                s.accept()[0].close()
            hits += 1

    if kind == socket.SOCK_STREAM:
        s.listen()
    threading.Thread(target=loop, daemon=True).start()


unique = f"tegmen-test-{os.getpid()}"
serve("SOCKET", socket.AF_UNIX, socket.SOCK_STREAM, home + "/socket", home + "/socket")
serve("DATAGRAM", socket.AF_UNIX, socket.SOCK_DGRAM, home + "/datagram", home + "/datagram")
serve("ABSTRACT", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + unique, unique)
serve("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
serve("DNS", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6"):
    serve("TCP6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))

key = 0x7E600000 + os.getpid() % 0x100000
names["KEY"] = key
shm, sem, msg = call("shmget", key, 4096, 0o1666), call("semget", key, 1, 0o1666), call("msgget", key, 0o1666)
names["SHM"], names["QUEUE"] = shm, unique
call("mq_open", unique.encode(), os.O_CREAT | os.O_RDWR, 0o666, 0)
for name, path in (("SECRET", home + "/secret"), ("SHM_FILE", "/dev/shm/" + unique), ("TMP_FILE", "/tmp/" + unique)):
    with open(path, "w") as f:
        f.write("host secret\n")
    names[name] = path

try:
    for name, value in names.items():
        print(f"HOST_{name}={value}")
    print(flush=True)
    for _ in sys.stdin:
        print(hits, flush=True)
finally:
    libc.shmctl(shm, 0, None)
    libc.semctl(sem, 0, 0)
    libc.msgctl(msg, 0, None)
    call("mq_unlink", unique.encode())
    os.unlink(names["SHM_FILE"])
    os.unlink(names["TMP_FILE"])
