//go:build darwin || (linux && (amd64 || arm64))

package mac

// networkActs are for python3.
var networkActs = []act{
	{"TCP on loopback", always, "socket.create_connection(('127.0.0.1', int(env['TCP'])), 5); print('ESCAPED')"},
	{"TCP on loopback, IPv6", perhaps, "socket.create_connection(('::1', int(env['TCP6'])), 5); print('ESCAPED')"},
	{"TCP on loopback, mapped", always, "s = socket.socket(socket.AF_INET6); " +
		"s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0); s.connect(('::ffff:127.0.0.1', int(env['TCP']))); " +
		"print('ESCAPED')"},
	{"TCP to any address", always, "socket.create_connection(('0.0.0.0', int(env['TCP'])), 5); print('ESCAPED')"},
	{"TCP without waiting", always, `
import errno
s = socket.socket(); s.setblocking(False)
if s.connect_ex(("127.0.0.1", int(env["TCP"]))) in (0, errno.EINPROGRESS): print("ESCAPED")`},
	{"connectx", always, `
class ends(ctypes.Structure): _fields_ = [("iface", ctypes.c_uint), ("src", ctypes.c_void_p), ("srclen", ctypes.c_uint), ("dst", ctypes.c_void_p), ("dstlen", ctypes.c_uint)]
to = ctypes.create_string_buffer(b"\x10\x02" + int(env["TCP"]).to_bytes(2, "big") + b"\x7f\0\0\1" + bytes(8), 16)
e = ends(0, None, 0, ctypes.addressof(to), 16)
s = socket.socket()
if ctypes.CDLL(None).connectx(s.fileno(), ctypes.byref(e), 0, 0, None, 0, None, None) == 0: print("ESCAPED")`},
	{"UDP", always, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', int(env['UDP']))); " +
		"print('ESCAPED')"},
	{"UDP, connected", always, "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " +
		"s.connect(('127.0.0.1', int(env['UDP']))); s.send(b'x'); print('ESCAPED')"},
	{"route-metadata 169.254.169.254", never, "socket.create_connection(('169.254.169.254', 80), 3); print('ESCAPED')"},
	{"the internet", never, "socket.create_connection(('192.0.2.1', 80), 3); print('ESCAPED')"},
	{"NVIDIA/OpenShell#1169 a name", perhaps, "socket.getaddrinfo('example.com', 80); print('ESCAPED')"},
	{"ICMP", always, "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1); " +
		"s.sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0', ('127.0.0.1', 0)); print('ESCAPED')"},
	{"a raw socket", never, "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('ESCAPED')"},
	{"listen on loopback", always, "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print('ESCAPED')"},
	{"listen on all addresses", always, "s = socket.socket(); s.bind(('', 0)); s.listen(); print('ESCAPED')"},
	{"listen on IPv6", perhaps, "s = socket.socket(socket.AF_INET6); s.bind(('::1', 0)); s.listen(); print('ESCAPED')"},
	{"listen without bind", always, "s = socket.socket(); s.listen(); print('ESCAPED')"},
	{"receive UDP", always, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(('127.0.0.1', 0)); print('ESCAPED')"},
	{"a Unix socket", always, "socket.socket(socket.AF_UNIX).connect(env['SOCK']); print('ESCAPED')"},
	{"a Unix socket by a link", always,
		"os.symlink(env['SOCK'], 'l'); socket.socket(socket.AF_UNIX).connect('l'); print('ESCAPED')"},
	{"Unix datagrams", always,
		"socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', env['DGRAM']); print('ESCAPED')"},
	{"mDNSResponder", always, "socket.socket(socket.AF_UNIX).connect('/var/run/mDNSResponder'); print('ESCAPED')"},
	{"syslog", perhaps, "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect('/var/run/syslog'); print('ESCAPED')"},
	{"sandbox-runtime#234 docker.sock", perhaps, `
for path in ("/var/run/docker.sock", env["USERHOME"] + "/.docker/run/docker.sock", env["USERHOME"] + "/.colima/default/docker.sock", env["USERHOME"] + "/.orbstack/run/docker.sock"):
    try: socket.socket(socket.AF_UNIX).connect(path)
    except OSError: continue
    print("ESCAPED")`},
	{"the agent of ssh", perhaps, "socket.socket(socket.AF_UNIX).connect(env['AGENT']); print('ESCAPED')"},
	{"a Unix socket in a directory of the host", always,
		"socket.socket(socket.AF_UNIX).bind(env['HOST'] + '/s'); print('ESCAPED')"},
	{"control sockets of the kernel", always,
		"socket.socket(32, socket.SOCK_DGRAM, 2); print('ESCAPED') # AF_SYSTEM, SYSPROTO_CONTROL"},
	{"events of the kernel", always, "socket.socket(32, socket.SOCK_RAW, 1); print('ESCAPED') # SYSPROTO_EVENT"},
	{"routes", always, "socket.socket(17, socket.SOCK_RAW, 0); print('ESCAPED') # AF_ROUTE"},
	{"frames", never, "socket.socket(27, socket.SOCK_RAW, 0); print('ESCAPED') # AF_NDRV"},
}
