//go:build linux

package engine_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// near compares a value with another source: it may differ by a part, and by something that no program can see of
// itself.
func near(t *testing.T, what string, got, want, part, besides float64) {
	t.Helper()
	t.Logf("%s: %.4g, the guest's own %.4g (%+.1f %%)", what, got, want, 100*(got/want-1))
	if math.Abs(got-want) > part*want+besides {
		t.Errorf("%s is %.4g, want %.4g within %g %%", what, got, want, 100*part)
	}
}

// CPU time is what times(2) tells the guest, within 5 %. The guest cannot know the cost of its own start and end.
func TestUsageOfCPU(t *testing.T) { testbox.EachLevel(t, testUsageOfCPU, testbox.Confined...) }

func testUsageOfCPU(t *testing.T, l testbox.Level) {
	testenv.Long(t)
	eng := l.Open(t)
	const spin = `
import os, sys, threading, time
def spin(seconds):
    while time.process_time() < seconds: pass
def end(more=0):
    t = os.times()
    print(sum(t[:4]) + more, flush=True)
    os._exit(0)
`
	for _, c := range []struct{ name, code string }{
		{"itself", "spin(1); end()"},
		{"threads", `
l = [threading.Thread(target=spin, args=(1,)) for i in range(3)]
for t in l: t.start()
for t in l: t.join()
end()`},
		{"children", `
for i in range(3):
    if os.fork() == 0: spin(.35); os._exit(0)
for i in range(3): os.wait()
end()`},
		// If nobody waits for a process, the kernel adds its time only to the cgroup. The watchdog must see it.
		{"an orphan", `
r, w = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        spin(1)
        time.sleep(.3) # the watchdog looks four times a second
        os.write(w, b"%f" % time.process_time())
        time.sleep(60)
    os._exit(0)
os.wait()
end(float(os.read(r, 100)))`},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := l.Start(t, eng, engine.Spec{Keep: true})
			testbox.Run(t, box, "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done") // is none of it
			// Try again if it is far off: an emulated machine charges a process for what the machine below has taken.
			for i := range 3 {
				res := testbox.Run(t, box, "python3", "-c", spin+c.code)
				own, err := strconv.ParseFloat(strings.TrimSpace(string(res.Stdout)), 64)
				if err != nil {
					t.Fatalf("%v, %s", err, res.Stderr)
				}
				if waited := res.Usage.User + res.Usage.System; waited > res.Usage.CPU {
					t.Errorf("CPU time %v, and %v of the command's own", res.Usage.CPU, waited)
				}
				got, besides := res.Usage.CPU.Seconds(), startAndEnd(t).Seconds()
				if i == 2 || math.Abs(got-own) < .05*own+besides {
					near(t, "CPU time", got, own, .05, besides)
					break
				}
				t.Logf("%.3g, the guest's own %.3g", got, own)
			}
		})
	}
}

// startAndEnd returns twice the CPU time of an empty program.
func startAndEnd(t *testing.T) time.Duration {
	t.Helper()
	res := testbox.Run(t, testbox.Sandbox(t, engine.Spec{}), "true")
	return 2 * max(res.Usage.User+res.Usage.System, 10*time.Millisecond)
}

// Peak memory is what a program is known to touch, within 10 %: the difference from the same program that does not
// touch it.
func TestUsageOfMemory(t *testing.T) { testbox.EachLevel(t, testUsageOfMemory, testbox.Confined...) }

func testUsageOfMemory(t *testing.T, l testbox.Level) {
	testenv.Long(t)
	const touch = 16 * engine.MiB
	eng := l.Open(t)
	for _, c := range []struct{ name, code string }{
		{"anonymous", "x = b'x' * %d"},
		{"tmpfs", `
f = open("/tmp/f", "wb", 0)
for i in range(16): f.write(bytes(%d // 16))`},
		{"given back before the end", "x = b'x' * %d; time.sleep(.6); del x"},
		{"shared with children", `
x = b'x' * %d
for i in range(3):
    if os.fork() == 0: time.sleep(.6); os._exit(0)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !l.HasNamespaces() && c.name == "tmpfs" {
				t.Skip("it has none of its own")
			}
			peak := func(n engine.Bytes) float64 {
				// The watchdog looks four times a second, and closely near the limit.
				box := l.Start(t, eng, engine.Spec{Limits: engine.Limits{Memory: 64 * engine.MiB}})
				res := testbox.Run(t, box, "python3", "-c", "import os, time"+"\n"+fmt.Sprintf(c.code, int64(n))+"\ntime.sleep(.6)")
				if res.Outcome != engine.OutcomeOK || res.Usage.By == "" {
					t.Fatalf("%s, usage by %q: %s", res.Outcome, res.Usage.By, res.Stderr)
				}
				return float64(res.Usage.Memory)
			}
			const want = float64(touch / engine.MiB)
			got := 0.0
			for range 3 { // the watchdog may meet the interpreter as it starts
				if got = (peak(touch) - peak(0)) / float64(engine.MiB); math.Abs(got/want-1) < .1 {
					break
				}
			}
			near(t, "peak memory in MiB", got, want, .1, 0)
		})
	}
}

// Usage.Pids is the peak of processes and threads. The watchdog also counts pid 1 of the sandbox.
func TestUsageOfPids(t *testing.T) { testbox.EachLevel(t, testUsageOfPids, testbox.Confined...) }

func testUsageOfPids(t *testing.T, l testbox.Level) {
	testenv.NoRace(t)
	res := testbox.Run(t, l.Sandbox(t, engine.Spec{Limits: engine.Limits{Pids: 64}}), "python3", "-c", `
import os, threading, time
for i in range(5):
    if os.fork() == 0: time.sleep(.6); os._exit(0)
for i in range(4): threading.Thread(target=time.sleep, args=(.6,)).start()
`)
	first := 1
	if l.HasNamespaces() && testbox.ByCgroups(t) {
		first = 0
	}
	if res.Usage.Pids == 0 && l.HasNamespaces() && testbox.ByCgroups(t) {
		t.Skip("pids.peak is new in Linux 6.11")
	}
	if want := 10 + first; res.Usage.Pids != want {
		t.Errorf("%d processes and threads, want %d", res.Usage.Pids, want)
	}
}

// If asked to, the watchdog bounds what is added to a workspace of the host.
func TestOutcomeOfTheWorkspace(t *testing.T) {
	testenv.NoRace(t)
	testenv.Need(t, testenv.UserNS)
	dir := testenv.Dir(t)
	if err := os.WriteFile(dir+"/before", make([]byte, 4<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := errors.Join(os.Chown(dir, 65534, 65534), os.Chown(dir+"/before", 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	}
	box := testbox.Start(t, testbox.Open(t), engine.Spec{FS: engine.FS{Workspace: dir},
		Limits: engine.Limits{Workspace: 2 * engine.MiB}, Keep: true})
	if res := testbox.Run(t, box, "sh", "-c", "head -c 1000000 /dev/zero >small; rm before"); res.Outcome != engine.OutcomeOK {
		t.Fatalf("within the limit: %+v", res)
	}
	res := testbox.Run(t, box, "sh", "-c", "head -c 8000000 /dev/zero >large; sleep 98301")
	if res.Outcome != engine.OutcomeDisk || len(res.Events) != 1 || res.Events[0].Limit != "workspace" {
		t.Errorf("%s with %+v", res.Outcome, res.Events)
	}
}
