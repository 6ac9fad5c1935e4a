//go:build linux

package attack_test

import (
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// bomb is a guest that uses something up.
type bomb struct {
	name    string
	limits  engine.Limits
	program []string
	// How it ends with cgroups, and how with the watchdog. They differ only where the kernel counts what cannot be seen
	// from outside.
	cgroup, watchdog testbox.End
	after            func(t *testing.T, neighbour *engine.Sandbox, res *engine.Result) // nil: nothing more to see
}

const (
	small = 16 * engine.MiB // of memory; an interpreter takes 10 at most
	room  = 1 * engine.GiB  // of a tmpfs that memory ends first
)

var (
	oom   = testbox.Ends(engine.OutcomeOOM, 137, "memory")
	plain = testbox.Ends(engine.OutcomeExit, 3, "") // the guest itself noticed, and the kernel tells nobody else
)

var bombs = []bomb{
	{"malloc", engine.Limits{Memory: small}, testbox.Python(`
l = []
while True: l.append(b"x" * 65536)`), oom, oom, nil},

	{"mmap", engine.Limits{Memory: small}, testbox.Python(`
import mmap
b = b"x" * (1 << 20)
l = []
while True:
    l.append(mmap.mmap(-1, 1 << 20))
    l[-1].write(b)`), oom, oom, nil},

	{"tmpfs", engine.Limits{Memory: small, Tmp: room}, testbox.Python(fill, `"/tmp/f"`), oom, oom, nil},
	{"dev shm", engine.Limits{Memory: small, Tmp: room}, testbox.Python(fill, `"/dev/shm/f"`), oom, oom, nil},
	{"memfd", engine.Limits{Memory: small}, testbox.Python(fill, `__import__("os").memfd_create("f")`), oom, oom, nil},

	{"shared memory that nothing has attached", engine.Limits{Memory: small}, testbox.Python(`
import ctypes, time
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for i in range(24):
    at = libc.shmat(libc.shmget(0, 4 << 20, 0o1600), None, 0)
    ctypes.memset(at, 1, 4 << 20)
    libc.shmdt(ctypes.c_void_p(at))
time.sleep(60)`), oom, oom, nil},

	{"fork and copy on write", engine.Limits{Memory: small}, testbox.Python(`
import os, time
b = bytearray(b"x" * (4 << 20))
for i in range(24):
    if os.fork() == 0:
        for j in range(0, len(b), 4096): b[j] = i
        time.sleep(60)
os.wait()`), oom, oom, nil},

	// The page cache is memory, but no reason to kill: the kernel drops it. Where the kernel counts it, the limit may
	// have been met.
	{"page cache", engine.Limits{Memory: small}, testbox.Python(`
import glob
left = 28 << 20
for name in glob.glob("/usr/lib/*-linux-gnu/lib*.so.*"):
    if left <= 0: break
    with open(name, "rb", 0) as f:
        while left > 0 and (b := f.read(1 << 20)): left -= len(b)
print(left <= 0)`), testbox.Ends(engine.OutcomeOK, 0, testbox.AnyEvent), testbox.Ends(engine.OutcomeOK, 0, ""), printed("True")},

	{"forks", engine.Limits{Pids: 24}, testbox.Python(`
import os, time
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try: os.fork()
    except OSError: time.sleep(.05)
os._exit(3)`), testbox.Ends(engine.OutcomePids, 3, "pids"), testbox.Ends(engine.OutcomePids, 3, "pids"), nil},

	{"threads", engine.Limits{Pids: 24}, testbox.Python(`
import threading, time, os
try:
    while True: threading.Thread(target=time.sleep, args=(60,)).start()
except RuntimeError: print("refused", flush=True)
time.sleep(.5)
os._exit(3)`), testbox.Ends(engine.OutcomePids, 3, "pids"), testbox.Ends(engine.OutcomePids, 3, "pids"), printed("refused")},

	// Each process may use up its own limit; together they use more than all CPUs have.
	{"CPU burners", engine.Limits{CPUTime: 1e9}, testbox.Python(`
import os
for i in range(2 * os.cpu_count() + 1):
    if os.fork() == 0:
        while True: pass
while True: os.wait()`), testbox.Ends(engine.OutcomeCPU, 137, "cputime"), testbox.Ends(engine.OutcomeCPU, 137, "cputime"), nil},

	{"descriptors", engine.Limits{Files: 64}, testbox.Python(`
import os, errno
l = []
try:
    while True: l.append(os.open("/", 0))
except OSError as e: print(errno.errorcode[e.errno], len(l) < 64, flush=True)
os._exit(3)`), plain, plain, printed("EMFILE True")},

	{"inodes", engine.Limits{TmpFiles: 100}, testbox.Python(`
import os, errno
try:
    for i in range(1000): open("/tmp/%%d" %% i, "w").close()
except OSError as e: print(errno.errorcode[e.errno], i < 100, flush=True)
os._exit(3)`), testbox.Ends(engine.OutcomeExit, 3, "tmpfiles"), testbox.Ends(engine.OutcomeExit, 3, "tmpfiles"), printed("ENOSPC True")},

	// A sandbox gets a part of the user's inotify instances.
	{"inotify", engine.Limits{}, testbox.Python(inotify + `
print(many(100) < 100, flush=True)
os._exit(3)`), plain, plain, func(t *testing.T, neighbour *engine.Sandbox, res *engine.Result) {
		printed("True")(t, nil, res)
		if got := testbox.Run(t, neighbour, "python3", "-c", inotify+"print(many(1))"); string(got.Stdout) != "1\n" {
			t.Errorf("the neighbour: %s%s", got.Stdout, got.Stderr)
		}
	}},

	// Only the kernel knows how much is in pipes and sockets. Without a cgroup, the number of descriptors bounds it.
	{"pipes", engine.Limits{Memory: small, Files: 2048}, testbox.Python(`
import os
b = bytes(1 << 16)
l = []
try:
    while True:
        l.append(os.pipe())
        os.set_blocking(l[-1][1], False)
        try:
            while True: os.write(l[-1][1], b)
        except BlockingIOError: pass
except OSError: os._exit(3)`), oom, plain, nil},
	{"sockets", engine.Limits{Memory: small, Files: 512}, testbox.Python(`
import os, socket
b = bytes(1 << 16)
l = []
try:
    while True:
        l.append(socket.socketpair())
        for s in l[-1]:
            s.setblocking(False)
            try:
                while True: s.send(b)
            except BlockingIOError: pass
except OSError: os._exit(3)`), oom, plain, nil},

	{"log", engine.Limits{Output: 64 * engine.KiB, Discard: 4 * engine.MiB}, []string{"sh", "-c", "yes; exit 3"},
		testbox.Ends(engine.OutcomeOutput, 137, "discard"), testbox.Ends(engine.OutcomeOutput, 137, "discard"), func(t *testing.T,
			_ *engine.Sandbox, res *engine.Result) {
			if n := engine.Bytes(len(res.Stdout)); n != 64*engine.KiB || !res.Streams.TruncatedStdout {
				t.Errorf("%s of output are kept, truncated %v", n, res.Streams.TruncatedStdout)
			}
		}},

	{"huge file", engine.Limits{FileSize: engine.MiB}, []string{"dd", "if=/dev/zero", "of=/tmp/f", "bs=64k"},
		testbox.Ends(engine.OutcomeSignal, 153, "filesize"), testbox.Ends(engine.OutcomeSignal, 153, "filesize"), nil},
	{"sparse file", engine.Limits{FileSize: engine.MiB}, []string{"truncate", "-s", "1G", "/tmp/f"},
		testbox.Ends(engine.OutcomeSignal, 153, "filesize"), testbox.Ends(engine.OutcomeSignal, 153, "filesize"), nil},
	// A hole is not memory.
	{"sparse file without a limit", engine.Limits{FileSize: engine.UnlimitedBytes, Memory: small}, testbox.Python(`
import os
f = os.open("/tmp/f", os.O_RDWR | os.O_CREAT)
os.truncate(f, 1 << 40)
for i in range(0, 1 << 40, 1 << 36): os.pwrite(f, b"x", i)
print(os.stat(f).st_blocks <= 1024)`), testbox.Ends(engine.OutcomeOK, 0, ""), testbox.Ends(engine.OutcomeOK, 0, ""), printed("True")},
	{"full tmpfs", engine.Limits{Tmp: 4 * engine.MiB}, testbox.Python(`
import os
try:
    f = open("/tmp/f", "wb", 0)
    while True: f.write(bytes(1 << 20))
except OSError: os._exit(3)`), testbox.Ends(engine.OutcomeExit, 3, "tmp"), testbox.Ends(engine.OutcomeExit, 3, "tmp"), nil},
}

// fill writes to a file until something stops it.
const fill = `
f = open(%s, "wb", 0)
b = bytes(1 << 20)
while True: f.write(b)`

// inotify defines many, which makes instances and returns how many it got.
const inotify = `
import ctypes, os
libc = ctypes.CDLL(None)
def many(n): return sum(libc.inotify_init() >= 0 for i in range(n))
`
