# what: IP protocols other than TCP, UDP and ICMP: ESP, AH, SCTP, DCCP, L2TP, UDP-Lite, MPTCP
# stops: CVE-2026-43284 (Dirty Frag), CVE-2017-6074
# row: sockets
# outside: ok EINVAL (a kernel without it)
# inside: EPROTONOSUPPORT
# landlock: EPERM

from lib.probe import *

userns(CLONE_NEWNET)
protocols = dict(esp=(3, 50), ah=(3, 51), sctp=(1, 132), dccp=(1, 33), l2tp=(2, 115), udplite=(2, 136), mptcp=(1, 262), raw=(3, 255))
each(**{n: lambda t=t, p=p: family(2, t, p) for n, (t, p) in protocols.items()})
