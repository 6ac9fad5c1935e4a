//go:build linux

package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestOutcomes(t *testing.T) { testbox.EachLevel(t, testOutcomes) }

func testOutcomes(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{Keep: true})
	for _, c := range []struct {
		name, script string
		outcome      engine.Outcome
		code         int
		signal       unix.Signal
	}{
		{"ok", "true", engine.OutcomeOK, 0, 0},
		{"exit", "exit 3", engine.OutcomeExit, 3, 0},
		{"high exit", "exit 255", engine.OutcomeExit, 255, 0},
		{"an exit status that looks like a kill", "exit 137", engine.OutcomeExit, 137, 0},
		{"kill", "kill -9 $$", engine.OutcomeSignal, 137, unix.SIGKILL},
		{"term", "kill -15 $$", engine.OutcomeSignal, 143, unix.SIGTERM},
		{"segv", "kill -11 $$", engine.OutcomeSignal, 139, unix.SIGSEGV},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := testbox.Run(t, box, "sh", "-c", c.script)
			if res.Outcome != c.outcome || res.ExitCode != c.code || res.Signal != c.signal {
				t.Errorf("got %s %d %v, want %s %d %v", res.Outcome, res.ExitCode, res.Signal, c.outcome, c.code, c.signal)
			}
		})
	}
}

func TestLostWhenTheSandboxEnds(t *testing.T) {
	testbox.EachLevel(t, testLostWhenTheSandboxEnds, testbox.Confined...)
}

func testLostWhenTheSandboxEnds(t *testing.T, l testbox.Level) {
	box := l.Sandbox(t, engine.Spec{})
	cmd := box.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err == nil {
		res, err := cmd.Wait()
		if err != nil || res.Outcome != engine.OutcomeLost {
			t.Errorf("%+v, %v", res, err)
		}
	} else {
		t.Fatal(err)
	}
}

func TestCPUTimeLimit(t *testing.T) { testbox.EachLevel(t, testCPUTimeLimit) }

func testCPUTimeLimit(t *testing.T, l testbox.Level) {
	testenv.Long(t)
	for _, c := range []struct {
		name, script string
		signal       unix.Signal
	}{
		{"default", "while :; do :; done", unix.SIGXCPU},
		{"ignoring SIGXCPU", "trap '' XCPU; while :; do :; done", unix.SIGKILL},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := l.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{CPUTime: time.Second}})
			res := testbox.Run(t, box, "sh", "-c", c.script)
			if res.Outcome != engine.OutcomeCPU || res.Signal != c.signal {
				t.Errorf("got %s by %v, want cpu by %v", res.Outcome, res.Signal, c.signal)
			}
			if used := res.Usage.User + res.Usage.System; used < 500*time.Millisecond || used > 3*time.Second {
				t.Errorf("used %v of 1s", used)
			}
			// The same signals from another sender are not the limit.
			if res := testbox.Run(t, box, "sh", "-c", "kill -XCPU $$"); res.Outcome != engine.OutcomeSignal {
				t.Errorf("a SIGXCPU of its own: %s", res.Outcome)
			}
		})
	}
}

// A guest gets this errno at each limit, and cannot raise the limit.
func TestLimitsHold(t *testing.T) {
	testenv.NoRace(t)
	box := testbox.Sandbox(t, engine.Spec{Limits: engine.Limits{
		Pids: 20, Files: 32, FileSize: 2 * engine.MiB, Tmp: 8 * engine.MiB, TmpFiles: 100, AddressSpace: 512 * engine.MiB,
	}})
	const py = "import os, resource, errno, sys\n"
	for _, c := range []struct{ name, code, want string }{
		{"processes", `
import signal
kids = []
try:
    while len(kids) < 100:
        pid = os.fork()
        if pid == 0: signal.pause()
        kids.append(pid)
except OSError as e: print(errno.errorcode[e.errno], len(kids) < 20)
for pid in kids: os.kill(pid, 9); os.waitpid(pid, 0)`, "EAGAIN True"},
		{"files", `
l = []
try:
    while True: l.append(os.open("/", 0))
except OSError as e: print(errno.errorcode[e.errno], len(l))`, "EMFILE 29"},
		{"file size", `
__import__("signal").signal(__import__("signal").SIGXFSZ, __import__("signal").SIG_IGN)
f = os.open("/tmp/f", os.O_CREAT | os.O_WRONLY)
try:
    for i in range(3): os.write(f, bytes(1 << 20))
except OSError as e: print(errno.errorcode[e.errno], os.fstat(f).st_size)
os.unlink("/tmp/f")`, "EFBIG 2097152"},
		{"tmp", `
try:
    for i in range(9): open("/tmp/%d" % i, "wb").write(bytes(1 << 20))
except OSError as e: print(errno.errorcode[e.errno], i)
for f in os.listdir("/tmp"): os.unlink("/tmp/" + f)`, "ENOSPC 8"},
		{"shm", `
try:
    for i in range(9): open("/dev/shm/%d" % i, "wb").write(bytes(1 << 20))
except OSError as e: print(errno.errorcode[e.errno], i)
for f in os.listdir("/dev/shm"): os.unlink("/dev/shm/" + f)`, "ENOSPC 8"},
		{"inodes", `
try:
    for i in range(200): open("/workspace/%d" % i, "w")
except OSError as e: print(errno.errorcode[e.errno], i < 100)
for f in os.listdir("/workspace"): os.unlink("/workspace/" + f)`, "ENOSPC True"},
		{"address space", `
try: bytearray(600 << 20)
except MemoryError: print("MemoryError")`, "MemoryError"},
		{"raise", `
for r in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_CORE):
    s, h = resource.getrlimit(r)
    try: resource.setrlimit(r, (h + 1, h + 1)); print("raised", r)
    except (ValueError, PermissionError) as e: print("no", end=" ")`, "no no no no no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := testbox.Run(t, box, "python3", "-c", py+c.code)
			if got := strings.TrimSpace(string(res.Stdout)); got != c.want {
				t.Errorf("got %q, want %q (%s %d, stderr %s)", got, c.want, res.Outcome, res.ExitCode, res.Stderr)
			}
		})
	}
}

func TestUsage(t *testing.T) { testbox.EachLevel(t, testUsage, testbox.Confined...) }

func testUsage(t *testing.T, l testbox.Level) {
	testenv.NoRace(t)
	res := testbox.Run(t, l.Sandbox(t, engine.Spec{}), "python3", "-c", `
import time
x = bytearray(256 << 20)
while time.process_time() < 0.3: pass`)
	if u := res.Usage.User + res.Usage.System; u < 280*time.Millisecond || u > 2*time.Second {
		t.Errorf("CPU %v, want some 300ms", u)
	}
	var self unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &self); err != nil {
		t.Fatal(err)
	}
	// A command starts with the memory of this process, so its peak is not less than that.
	if m, own := res.Usage.MaxRSS, engine.Bytes(self.Maxrss)*engine.KiB; m < 256*engine.MiB ||
		m > max(320*engine.MiB, own) {
		t.Errorf("resident %v, want some 265MiB, or up to the %v of this process", m, own)
	}
	if res.Usage.Wall < 280*time.Millisecond {
		t.Errorf("wall %v", res.Usage.Wall)
	}
}

// If pid 1 is killed from outside, its commands end with it: they are lost, whatever the signal, and no other can be
// started.
func TestLostWhenPid1IsKilled(t *testing.T) {
	eng := testbox.Open(t)
	for range 20 {
		box := testbox.Start(t, eng, engine.Spec{Keep: true})
		cmd := box.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		testbox.KillInit(t)
		if res, err := cmd.Wait(); err != nil || res.Outcome != engine.OutcomeLost {
			t.Errorf("%+v, %v", res, err)
		}
		if _, err := box.Command("true").Run(); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("another command: %v", err)
		}
		<-box.Done()
	}
}
