# what: IPv6 protocols other than TCP, UDP and ICMP
# stops: CVE-2026-43284 (Dirty Frag)
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EPROTONOSUPPORT
# landlock: EPERM
# unproven: EAFNOSUPPORT (a kernel without IPv6)

from lib.probe import *

userns(CLONE_NEWNET)
protocols = dict(esp=(3, 50), ah=(3, 51), sctp=(1, 132), l2tp=(2, 115), udplite=(2, 136), mptcp=(1, 262), raw=(3, 255))
each(**{n: lambda t=t, p=p: family(10, t, p) for n, (t, p) in protocols.items()})
