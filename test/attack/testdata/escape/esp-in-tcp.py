# what: upper layer protocols of a TCP socket: espintcp and others
# stops: CVE-2026-46300 (Fragnesia); CVE-2023-0461
# row: sockets
# outside: ok ENOENT (a kernel without it) ENOTCONN
# inside: ENOPROTOOPT
# landlock: EPERM

from lib.probe import *

def ulp(name):
    with socket.socket() as s:
        call("setsockopt", s.fileno(), 6, 31, name, len(name))

each(espintcp=lambda: ulp(b"espintcp"), tls=lambda: ulp(b"tls"), smc=lambda: ulp(b"smc"))
