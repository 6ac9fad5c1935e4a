//go:build linux && (amd64 || arm64)

package sample_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/sample"
)

// What a program does, and how much memory that adds to what it has when it
// begins, whatever it says before "said".
func TestMemory(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       int64 // MiB
	}{
		{"touched", `m = bytearray(64 << 20)`, 64},
		{"mapped and not touched", `m = mmap.mmap(-1, 64 << 20)`, 0},
		{"shared by eight children", `
m = bytearray(64 << 20)
for i in range(8):
    if os.fork() == 0: signal.pause()`, 64 + 5},
		{"written to by a child", `
m = bytearray(64 << 20)
r, w = os.pipe()
if os.fork() == 0:
    for i in range(0, len(m), 4096): m[i] = 1
    os.write(w, b"x"); signal.pause()
os.read(r, 1)`, 128 + 3},
		{"memfd, unmapped", `
fd = os.memfd_create("a b) R 1")
for i in range(64): os.write(fd, bytes(1 << 20))
if os.fork() == 0: signal.pause()`, 64 + 3},
		{"memfd, mapped and closed", `
import ctypes
fd = os.memfd_create("x"); os.truncate(fd, 64 << 20)
libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p
p = libc.mmap(None, ctypes.c_size_t(64 << 20), 3, 1, fd, ctypes.c_long(0)); os.close(fd)
ctypes.memset(p, 1, 64 << 20)`, 64},
		{"shared without a name", `
m = mmap.mmap(-1, 64 << 20)
for i in range(0, len(m), 4096): m[i] = 1
if os.fork() == 0: signal.pause()`, 64 + 3},
		{"files in /tmp and /dev/shm", `
for name in "/tmp/a", "/dev/shm/b":
    with open(name, "wb") as f:
        for i in range(32): f.write(bytes(1 << 20))`, 64},
		{"a file without a name", `
f = open("/workspace/x", "wb")
os.unlink("/workspace/x")
for i in range(64): f.write(bytes(1 << 20))`, 64},
		{"of a process whose first thread has ended", `
import ctypes
m = bytearray(64 << 20)
def last():
    os.read(r, 1)
    os.write(1, b"said\n")
    sys.stdin.readline(); sys.stdin.readline()
r, w = os.pipe()
threading.Thread(target=last).start()
os.write(w, b"x")
ctypes.CDLL(None).pthread_exit(None)`, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t)
			tk := b.python(`say("begun")` + "\n" + c.code + "\nsay('said')")
			tk.hears()
			before := now(t, b.s)
			tk.goOn()
			tk.hears()
			more := func(s sample.Sample) int64 { return (s.Memory - before.Memory) / mib }
			after := eventually(t, b.s, func(s sample.Sample) bool { return more(s) >= c.want-4 && more(s) <= c.want+8 })
			if got := more(after); got < c.want-4 || got > c.want+8 {
				t.Errorf("%d MiB more, want some %d (%+v, then %+v)", got, c.want, before, after)
			}
			far, err := b.s.Sample(1 << 40)
			if err != nil || far.Memory < after.Memory-mib {
				t.Errorf("the bound is %d, %v; exactly it is %d", far.Memory, err, after.Memory)
			}
		})
	}
}

// eventually measures until that is as it should be, which takes a while: not all
// descriptors are looked at each time.
func eventually(t *testing.T, s *sample.Sampler, ok func(sample.Sample) bool) (got sample.Sample) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if got = now(t, s); ok(got) {
			break
		}
	}
	return got
}

// Where a file is mapped it is counted once, if that is what decides.
func TestMappedFilesCountOnce(t *testing.T) {
	b := start(t)
	tk := b.python(`
f = open("/dev/shm/x", "w+b"); f.truncate(64 << 20)
m = mmap.mmap(f.fileno(), 64 << 20)
fd = os.memfd_create("x"); os.truncate(fd, 64 << 20)
n = mmap.mmap(fd, 64 << 20)
for i in range(0, len(m), 4096): m[i] = n[i] = 1
say("said")`)
	tk.hears()
	eventually(t, b.s, func(s sample.Sample) bool { return s.Memory > 200*mib }) // each counts twice
	got, err := b.s.Sample(170 * mib)
	if err != nil || got.Memory < 128*mib || got.Memory > 150*mib {
		t.Errorf("%d MiB, %v, want some 140", got.Memory/mib, err)
	}
}

func TestProcessesAreThreads(t *testing.T) {
	b := start(t)
	if got := now(t, b.s).Processes; got != 1 {
		t.Errorf("%d in an empty sandbox, want pid 1", got)
	}
	tk := b.python(`
open("/proc/self/comm", "w").write("x) R 1 1\n(")
for i in range(10): threading.Thread(target=signal.pause, daemon=True).start()
say("said")`)
	tk.hears()
	if got := now(t, b.s).Processes; got != 1+1+10 {
		t.Errorf("%d, want 12", got)
	}
}

// CPU time is what processes know that they have used: 150 ms.
func TestCPU(t *testing.T) {
	const burn = `
def burn(s):
    while time.process_time() < s: pass
`
	for _, c := range []struct {
		name, code string
		want       time.Duration
	}{
		{"one process", `burn(0.15)`, 150 * time.Millisecond},
		{"a child, still there", `
r, w = os.pipe()
if os.fork() == 0: burn(0.15); os.write(w, b"x"); signal.pause()
os.read(r, 1)`, 150 * time.Millisecond},
		{"threads", `
ts = [threading.Thread(target=burn, args=(0.15,)) for i in range(4)]
for x in ts: x.start()
for x in ts: x.join()`, 150 * time.Millisecond},
		{"children one after the other", `
for i in range(50):
    if os.fork() == 0: burn(0.003); os._exit(0)
    os.wait()`, 150 * time.Millisecond},
		{"a grandchild seen by nobody, waited for", `
if os.fork() == 0:
    if os.fork() == 0: burn(0.15); os._exit(0)
    os.wait(); os._exit(0)
os.wait()`, 150 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t)
			tk := b.python(burn + `
def total():
    return sum(sum(resource.getrusage(w)[:2]) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
say("begun")
` + c.code + `
say(total())`)
			tk.hears()
			before := now(t, b.s).CPU
			done := make(chan string, 1)
			tk.goOn()
			go func() {
				line, _ := tk.out.ReadString('\n') // seen below
				done <- strings.TrimSpace(line)
			}()
			var last time.Duration
			for over := false; !over; {
				select {
				case line := <-done:
					over = true
					if sum, err := strconv.ParseFloat(line, 64); err != nil || sum < c.want.Seconds()*0.9 && c.name != "a child, still there" {
						t.Errorf("it says %s, %v", line, err)
					} else if c.name != "a child, still there" {
						c.want = max(c.want, time.Duration(sum*float64(time.Second))-before)
					}
				case <-time.After(7 * time.Millisecond):
				}
				got := now(t, b.s).CPU
				if got < last {
					t.Errorf("%v after %v", got, last)
				}
				last = got
			}
			if got := last - before; got < c.want*9/10-20*time.Millisecond || got > c.want*11/10+30*time.Millisecond {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestEnd(t *testing.T) {
	b := start(t)
	fail(t, b.Close())
	if got, err := b.s.Sample(1); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%+v, %v", got, err)
	}
}
