//go:build linux

package compat

// The scripts of TestTools. They must print the same everywhere.

const cWork = `
gcc -O1 -Wall -pthread -o work work.c -lrt
mkdir d && cd d && ../work
`

// The leak checker traces its own process, which a sandbox refuses.
const sanitizers = `
export ASAN_OPTIONS=detect_leaks=0
cat >a.c <<END
#include <stdlib.h>
#include <stdio.h>
int main(int c, char **v) { char *p = malloc(10); int big = 2147483647; big += c; p[9 + c - 1] = 1; printf("%d %d\n", p[9], big); fflush(stdout); return p[9 + c]; }
END
gcc -g -fsanitize=address,undefined -o a a.c
code=0; ./a >out 2>err || code=$?
cat out; echo $code; grep -ow 'heap-buffer-overflow\|signed integer overflow' err | sort -u
`

// jobserver runs recursive makes that share four jobs through a pipe or a FIFO.
const jobserver = `
cat >Makefile <<'END'
all: $(foreach n,1 2 3 4 5 6,sub$(n))
sub%:
	+@$(MAKE) -s leaf NAME=$*
leaf: $(foreach n,1 2 3 4 5 6 7 8,$(NAME).$(n))
$(NAME).%:
	@sh -c 'echo $@ >$@'
END
make -sj4 all && cat [0-9].[0-9] | sort | cksum
`

const sqlite3 = `
sqlite3 t.db 'pragma journal_mode=wal; create table t(who, n);'
pids=
for who in a b; do
	i=0; while [ $i -lt 50 ]; do echo "insert into t values('$who', $i);"; i=$((i + 1)); done | sqlite3 -cmd '.timeout 60000' t.db & pids="$pids $!"
done
for pid in $pids; do wait $pid; done
sqlite3 t.db 'select who, count(*), sum(n) from t group by who; pragma integrity_check;'
sqlite3 t.db '.backup copy.db' && sqlite3 copy.db .dump | sort | cksum
`

// httpLoopback lets the kernel choose the port, and learns it through a FIFO.
const httpLoopback = `
mkdir www && head -c 1M /dev/zero >www/zero && mkfifo port
cat >serve.py <<'END'
import functools, http.server
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory="www"))
with open("port", "w") as f: print(s.server_port, file=f)
s.serve_forever()
END
python3 serve.py & server=$!
read port <port
curl -sS --max-time 30 http://127.0.0.1:$port/zero | cksum
curl -sS --max-time 30 -o /dev/null -w '%{http_code} %{size_download}\n' http://localhost:$port/zero
curl -sS --max-time 30 -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$port/none
code=0; curl -s --max-time 30 http://127.0.0.1:1/ || code=$?; echo $code
exec 2>/dev/null # a shell may say that it was terminated
kill $server; wait $server || echo $?
`

const sshKeygen = `
for type in ed25519 rsa ecdsa; do
	ssh-keygen -q -t $type -N '' -C me -f $type
	echo "me $(cat $type.pub)" >>signers
	echo text | ssh-keygen -q -Y sign -f $type -n file >$type.sig 2>/dev/null
	echo text | ssh-keygen -q -Y verify -f signers -I me -n file -s $type.sig >/dev/null && echo $type good
	code=0; echo other | ssh-keygen -q -Y verify -f signers -I me -n file -s $type.sig >/dev/null 2>&1 || code=$?; echo $code
done
ls -l ed25519 rsa ecdsa | cut -c1-10
`

const openssl = `
openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
echo text >text
openssl dgst -sha256 -sign key -out sig text && openssl x509 -in cert -noout -pubkey >pub && openssl dgst -sha256 -verify pub -signature sig text
openssl enc -aes-256-ctr -pbkdf2 -k x -in text | openssl enc -d -aes-256-ctr -pbkdf2 -k x
openssl verify -CAfile cert cert; openssl rand 100 | wc -c
openssl speed -seconds 1 -bytes 1024 -evp sha256 2>/dev/null | grep -o ^sha256
`

const perl = `perl -e '
use strict; use IO::Socket::INET; use POSIX ":sys_wait_h"; use Config;
$| = 1;
my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1") or die "listen: $!";
for my $n (1 .. 3) {
	defined(my $pid = fork) or die "fork: $!";
	if (!$pid) { my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $l->sockport) or die "connect: $!"; print $c "from $n\n"; print STDOUT scalar <$c>; exit $n; }
	my $c = $l->accept; print $c "got " . <$c>; close $c;
	waitpid($pid, 0); print "exit ", $? >> 8, "\n";
}
if ($Config{usethreads}) {
	print eval q{
		use threads; use threads::shared;
		my $sum :shared = 0;
		$_->join for map { my $n = $_; threads->create(sub { for (1 .. 100) { lock($sum); $sum += $n } }) } 1 .. 4;
		"threads $sum\n";
	} // die;
}
local $SIG{ALRM} = sub { die "alarm\n" };
alarm 1; eval { select undef, undef, undef, 30 }; print $@;
open(my $p, "-|", "echo", "piped") or die "pipe: $!"; print <$p>;
'`

// tmux runs a shell in its pseudo-terminal and prints the screen. The shell says through a channel when the screen is
// ready.
const tmux = `
export TMUX_TMPDIR=$PWD SHELL=/bin/sh
tmux -f /dev/null -L x new-session -d -x 60 -y 10 'PS1= exec sh'
tmux -L x send-keys 'stty size; test -t 1 && echo "$TERM" $((6 * 7)); tmux -L x wait-for -S done' Enter
tmux -L x wait-for done
tmux -L x capture-pane -p | grep -x '10 60\|9 60\|.* 42'
tmux -L x split-window 'cat' && tmux -L x list-panes -F '#{pane_width} #{pane_dead}'
tmux -L x kill-server
`

const typescript = `
script -qec 'test -t 0 && test -t 1 && stty rows 30 cols 90 && stty size; exit 5' log </dev/null | tr -d '\r' || true
code=0; script -qec 'exit 5' /dev/null </dev/null || code=$?; echo $code
grep -c '30 90' log
`

const nodeServers = `node -e '
const fs = require("fs"), net = require("net"), crypto = require("crypto"), cp = require("child_process");
const { Worker } = require("worker_threads");
const shared = new Int32Array(new SharedArrayBuffer(4));
const workers = [1, 2, 3].map(n => new Promise(r => new Worker("const { workerData: d } = require(\"worker_threads\"); for (let i = 0; i < 1000; i++) Atomics.add(d.a, 0, d.n)", { eval: true, workerData: { a: shared, n } }).on("exit", r)));
const served = new Promise(r => {
  const s = net.createServer(c => c.on("data", d => c.end("echo " + d))).listen(0, "127.0.0.1", () => {
    let text = "";
    net.connect(s.address().port, "127.0.0.1").on("data", d => text += d).on("end", () => s.close(() => r(text))).write("hello");
  });
});
fs.mkdirSync("w");
const watched = new Promise(r => { const w = fs.watch("w", (event, name) => { w.close(); r(event + " " + name); }); fs.writeFileSync("w/file", "x"); });
const keys = new Promise((r, no) => crypto.generateKeyPair("ed25519", {}, (e, pub, key) => e ? no(e) : r(crypto.verify(null, Buffer.from("x"), pub, crypto.sign(null, Buffer.from("x"), key)))));
const child = new Promise(r => { const c = cp.spawn("cat"); let t = ""; c.stdout.on("data", d => t += d); c.on("close", code => r(t + code)); c.stdin.end("through cat "); });
const message = new Promise(r => { const c = cp.spawn(process.execPath, ["-e", "process.on(\"message\", m => { process.send(m * 2); process.disconnect() })"], { stdio: ["ignore", "inherit", "inherit", "ipc"] }); c.on("message", r); c.send(21); });
const derived = new Promise(r => crypto.scrypt("p", "salt", 16, (e, k) => r(k.toString("hex"))));
Promise.all([Promise.all(workers).then(() => shared[0]), served, watched, keys, child, message, derived, fs.promises.readFile("w/file", "utf8")]).then(all => console.log(all));
'`

const asyncServers = `
import asyncio, os, signal, socket, socketserver, ssl, subprocess, threading
class Upper(socketserver.StreamRequestHandler):
    def handle(self): self.wfile.write(self.rfile.readline().upper())
for family in (socketserver.ThreadingTCPServer, socketserver.ForkingTCPServer):
    with family(("127.0.0.1", 0), Upper) as s:
        t = threading.Thread(target=s.serve_forever); t.start()
        with socket.create_connection(s.server_address, 30) as c:
            c.sendall(b"shout\n"); print(c.makefile().readline().strip())
        s.shutdown(); t.join()
with socketserver.ThreadingUnixStreamServer("sock", Upper) as s:
    t = threading.Thread(target=s.serve_forever); t.start()
    with socket.socket(socket.AF_UNIX) as c:
        c.connect("sock"); c.sendall(b"local\n"); print(c.makefile().readline().strip())
    s.shutdown(); t.join()
subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key", "-out", "cert",
    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, stderr=subprocess.DEVNULL)
async def main():
    p = await asyncio.create_subprocess_exec("sh", "-c", "read x; echo got $x; exit 4", stdin=-1, stdout=-1)
    print(await p.communicate(b"line\n"), p.returncode)
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); here.load_cert_chain("cert", "key")
    there = ssl.create_default_context(cafile="cert")
    async def echo(r, w):
        w.write(await r.readline()); await w.drain(); w.close()
    s = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=here)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname(), ssl=there, server_hostname="localhost")
    w.write(b"secret\n"); print(await r.readline(), w.get_extra_info("ssl_object").version())
    w.close(); s.close()
    got = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(got.wait(), 30); print("signal")
asyncio.run(main())
`

const shell = `
code=0; timeout 0.2 sleep 100 || code=$?; echo timeout $code
code=0; (exec timeout -s KILL 0.2 sleep 100) 2>/dev/null || code=$?; echo timeout $code
nice -n 7 nice; nohup echo nohup 2>/dev/null; setsid -w sh -c 'exit 6' || echo setsid $?
echo 0 >n
bump='flock n sh -c "echo \$((\$(cat n) + 1)) >n"'
seq 1 40 | xargs -P 4 -I{} sh -c "$bump" && cat n
code=0; flock n flock -n n true || code=$?; echo flock $code
mkdir -p a/b/c && touch a/x a/b/y 'a/b/c/with space' && find a -type f -exec sh -c 'printf "%s\n" "$@"' sh {} + | sort
find a -type f -print0 | xargs -0 ls -d | sort | gzip | gunzip
mkfifo pipe
(echo fifo >pipe) & cat pipe; wait
trap 'echo trapped' USR1; kill -USR1 $$
printf '%s\n' c a b | sort | comm - /dev/null | paste -s -; date -u -d @86400 +%F
dd if=/dev/zero bs=1k count=8 status=none | split -b 3k - part. && ls part.*; cat part.* | wc -c
ln -s a l && readlink l && mktemp -d -p . XXXXXX >/dev/null && chmod 700 a && stat -c %a a && touch -d @0 a && stat -c %Y a
df . >/dev/null && ps -o comm= -p $$ && uptime >/dev/null && nproc >/dev/null && ulimit -n && sync
`

const zipped = `
mkdir z && seq 1 1000 >z/numbers && ln -s numbers z/link && chmod 750 z/numbers
zip -qry z.zip z && unzip -tq z.zip && mkdir out && unzip -q z.zip -d out && cmp z/numbers out/z/numbers && readlink out/z/link
stat -c %a out/z/numbers
seq 1 100 | jq -cs '{sum: add, n: length}'
`

const accounts = `
getent passwd root | cut -d: -f1,3,4; getent group root | cut -d: -f1,3; getent services ssh/tcp | tr -s ' '; getent protocols tcp | tr -s ' '
getent hosts localhost | awk '{ print $2 }'; code=0; getent passwd no-such-user || code=$?; echo $code
locale charmap; LC_ALL=C locale charmap; locale -a | grep -cx 'C\|POSIX\|C.utf8'
printf 'äöü' | wc -m; printf 'ÄÖ' | iconv -t ISO-8859-1 | od -An -tx1; TZ=Europe/Berlin date -d @1700000000 +%c
whoami >/dev/null && id -u >/dev/null && umask
`

const busybox = `
cp "$(command -v busybox)" . && for name in sh awk sed tar; do ln -s busybox $name; done
./sh -c 'echo $((2 + 3)); seq 1 10 | ./awk "{ s += \$1 } END { print s }"; echo abc | ./sed s/b/x/'
mkdir t && echo t >t/f && ./tar -czf t.tgz t && ./tar -tzf t.tgz | sort
./busybox sh -c 'exec 2>/dev/null; sleep 100 & kill $!; wait $! || echo $?'; ./busybox md5sum t/f | cut -c1-8
`

// xattrs archives user attributes and sparse files with tar.
const xattrs = `
python3 -c '
import os
open("f", "w").write("x")
try: os.setxattr("f", "user.key", b"value")
except OSError as e: print("no attributes:", e.strerror)
'
truncate -s 10M sparse
tar --xattrs --xattrs-include='user.*' -cSf a.tar f sparse && mkdir out && tar --xattrs --xattrs-include='user.*' -xSf a.tar -C out
python3 -c 'import os; print([(n, os.getxattr("out/f", n)) for n in os.listxattr("out/f") if n.startswith("user.")])'
stat -c '%n %s %b' out/sparse
`

// queue makes a POSIX message queue, in this IPC namespace.
const queue = `
import ctypes, errno, os
c = ctypes.CDLL(None, use_errno=True)
name = b"/tegmen-test-%d" % os.getpid()
print("ok" if c.mq_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, None) >= 0 and c.mq_unlink(name) == 0 else errno.errorcode[ctypes.get_errno()])
`

var raceSources = map[string]string{
	"go.mod": "module race\n\ngo 1.24\n",
	"race_test.go": `package race

import (
	"sync"
	"testing"
)

func TestRace(t *testing.T) {
	n := 0
	var group sync.WaitGroup
	for range 2 {
		group.Add(1)
		go func() { defer group.Done(); n++ }()
	}
	group.Wait()
}

func TestNoRace(t *testing.T) {
	c := make(chan int)
	go func() { c <- 1 }()
	<-c
}
`,
}

const raceRun = `
code=0; "$dir/race.test" -test.run NoRace || code=$?; echo $code
code=0; "$dir/race.test" -test.run TestRace >out 2>&1 || code=$?; echo $code; grep -c 'DATA RACE' out; grep -o '^--- FAIL: TestRace' out
`
