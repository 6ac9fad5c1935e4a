//go:build linux && (amd64 || arm64)

package sample_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/sample"
)

// family is a process with 64 MiB and eight children that share them, one of which
// then writes to all of it.
const family = `
m = bytearray(64 << 20)
r, w = os.pipe(); done, did = os.pipe()
kids = []
for i in range(8):
    pid = os.fork()
    if pid == 0:
        os.write(did, b"x")
        while True:
            os.read(r, 1)
            for i in range(0, len(m), 4096): m[i] = 1
            os.write(did, b"x")
    kids.append(pid)
for k in kids: os.read(done, 1)
say("shared")
os.write(w, b"x"); os.read(done, 1)
say("one writes")
`

// What is shared is counted once and what is not is not missed, while the sum of
// what is resident is far above the limit.
func TestSharedMemory(t *testing.T) {
	b := start(t)
	tk := b.python(family)
	tk.hears()
	measure := func(limit int64) sample.Sample {
		t.Helper()
		return whole(t, b.s, limit*mib)
	}
	if got := measure(130); got.Memory < 64*mib || got.Memory > 90*mib {
		t.Errorf("%d MiB of nine processes that share 64", got.Memory/mib)
	}
	measure(1)
	// Nothing has changed, so shares are not read again, unless a round is due.
	read := 10
	for range 5 {
		measure(130)
		read = min(read, sample.Measured(b.s))
	}
	if read > 0 {
		t.Errorf("the shares of %d processes were read although nothing has changed", read)
	}
	tk.goOn()
	tk.hears()
	if got := measure(120); got.Memory < 128*mib || got.Memory > 150*mib {
		t.Errorf("%d MiB when one has its own 64", got.Memory/mib)
	}
}

// What the dead had shared the living have for themselves.
func TestHeirs(t *testing.T) {
	b := start(t)
	tk := b.python(`
m = bytearray(64 << 20)
kids = []
for i in range(8):
    pid = os.fork()
    if pid == 0: del kids; signal.pause()
    kids.append(pid)
say("shared")
for k in kids[1:]: os.kill(k, 9); os.waitpid(k, 0)
say("two are left")`)
	tk.hears()
	limit := int64(100 * mib)
	if got := whole(t, b.s, limit); got.Memory > limit {
		t.Fatalf("%+v", got)
	}
	tk.goOn()
	tk.hears()
	if got := whole(t, b.s, limit); got.Memory < 64*mib || got.Memory > limit {
		t.Errorf("%d MiB, want some 75", got.Memory/mib)
	}
}

// After vfork a child has all of its parent's memory, and is not another 64 MiB.
func TestChildInTheSameMemory(t *testing.T) {
	b := start(t)
	tk := b.python(`
import ctypes
m = bytearray(64 << 20)
libc = ctypes.CDLL(None)
stack = ctypes.create_string_buffer(1 << 16)
CLONE_VM = 0x100
top = ctypes.c_void_p((ctypes.addressof(stack) + len(stack)) & ~15)
pid = libc.clone(libc.pause, top, CLONE_VM | signal.SIGCHLD, None)
say(pid > 0)
os.kill(pid, 9); os._exit(0)`)
	if said := tk.hears(); said != "True" {
		t.Fatal(said)
	}
	if got := now(t, b.s); got.Processes != 3 || got.Memory > 85*mib || got.Memory < 64*mib {
		t.Errorf("%d MiB of %d processes, want some 70 of 3", got.Memory/mib, got.Processes)
	}
}

// Many processes are not known of at once, but all are known of in the end.
func TestCrowd(t *testing.T) {
	b := start(t)
	tk := b.python(`
m = bytearray(24 << 20)
for i in range(200):
    if os.fork() == 0: signal.pause()
say("there")`)
	tk.hears()
	if got := whole(t, b.s, 200*mib); got.Processes != 202 || got.Memory < 24*mib || got.Memory > 2000*mib {
		t.Errorf("%+v", got)
	}
}

// A fork bomb goes on while it is measured, and its parents do not wait.
func TestStorm(t *testing.T) {
	b := start(t)
	tk := b.python(`
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def storm():
    for i in range(100):
        try:
            if os.fork() == 0:
                try: os.fork()
                finally: os._exit(0)
        except OSError: pass
r, w = os.pipe()
for i in range(3):
    if os.fork() == 0: os.read(r, 1); storm(); os._exit(0)
m = bytearray(32 << 20)
print("begun", flush=True)
os.write(w, b"xxx")
try:
    while True: os.wait() # until no child is left
except ChildProcessError: say("over")`)
	tk.hears()
	over := make(chan string, 1)
	go func() {
		line, _ := tk.out.ReadString('\n') // the program may be killed before, by a failing test
		over <- line
	}()
	var last sample.Sample
	for len(over) == 0 {
		got, err := b.s.Sample(1)
		if err != nil {
			t.Fatal(err)
		}
		if got.CPU < last.CPU || !got.Partial && got.Memory < 32*mib {
			t.Errorf("%+v after %+v", got, last)
		}
		last = got
	}
}

func TestTree(t *testing.T) {
	tk, pid := onHost(t, `
import ctypes
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
r, w = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        m = bytearray(64 << 20)
        while time.process_time() < 0.2: pass
        os.write(w, b"x"); signal.pause()
    os._exit(0)
os.wait(); os.read(r, 1)
say("said")`)
	tk.hears()
	s, err := sample.OpenTree(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fail(t, s.Close()) })
	got := now(t, s)
	if got.Processes != 2 || got.Memory < 64*mib || got.Memory > 100*mib || got.CPU < 190*time.Millisecond {
		t.Errorf("%+v, want two processes with some 75 MiB and 200ms", got)
	}
	orphan, _ := onHost(t, `say("another")`)
	orphan.hears()
	if n := now(t, s).Processes; n != 2 {
		t.Errorf("%d with a process that is not of the tree", n)
	}
}

// A command that is being started has the memory of this process for a moment. It is
// not the sandbox's.
func TestCommandsBeingStarted(t *testing.T) {
	b := start(t)
	heap := make([]byte, 256*mib)
	for i := 0; i < len(heap); i += 4096 {
		heap[i] = 1
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if res, err := b.Command("true").Run(); err != nil || res.ExitCode != 0 {
				t.Errorf("%+v, %v", res, err)
			}
		}
	}()
	for samples := 0; ; samples++ {
		select {
		case <-done:
			t.Logf("%d samples", samples)
			runtime.KeepAlive(heap)
			return
		default:
		}
		if got := now(t, b.s); got.Memory > 128*mib {
			t.Errorf("%+v", got)
		}
	}
}
