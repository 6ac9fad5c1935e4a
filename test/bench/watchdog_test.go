//go:build linux

package bench_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// growing are bombs that print "." for each MiB that they have taken.
var growing = map[string]string{
	"malloc": `
l = []
while True:
    for i in range(16): l.append(b"x" * 65536)
    os.write(1, b".")`,
	"mmap": `
while True:
    l = mmap.mmap(-1, 256 << 20)
    for i in range(256): l.write(b); os.write(1, b".")`,
	"memfd": `
f = os.memfd_create("f")
while True: os.write(f, b); os.write(1, b".")`,
	"tmpfs": `
f = os.open("/tmp/f", os.O_CREAT | os.O_WRONLY)
while True: os.write(f, b); os.write(1, b".")`,
	"fork and copy on write": `
m = [bytearray(b) for i in range(8)]
for i in range(64):
    if os.fork() == 0:
        for x in m:
            for j in range(0, len(x), 4096): x[j] = 1
            os.write(1, b".")
        time.sleep(60)
time.sleep(60)`,
}

// BenchmarkWatchdog measures how much guests get before the watchdog ends them, by their own account, and the cost of
// watching an idle one.
func BenchmarkWatchdog(b *testing.B) {
	testenv.Need(b, testenv.UserNS)
	const limit = 64 * engine.MiB
	h, err := engine.ProbeHost()
	if err != nil {
		b.Fatal(err)
	}
	h.Cgroup.Dir = "" // although there may be some
	eng := testbox.OpenWith(b, engine.Options{Host: &h})
	var t strings.Builder
	for name, code := range growing {
		var took []int
		for range 15 {
			box := testbox.Start(b, eng, engine.Spec{Limits: engine.Limits{Memory: limit, Tmp: engine.GiB}})
			res := testbox.Run(b, box, "python3", "-c", "import mmap, os, time\nb = b'x' * (1 << 20)\n"+code)
			if res.Outcome != engine.OutcomeOOM {
				b.Fatalf("%s: %s %s", name, res.Outcome, res.Stderr)
			}
			took = append(took, len(res.Stdout))
		}
		slices.Sort(took)
		fmt.Fprintf(&t, "%s: %d MiB of %s, %d at most\n", name, took[len(took)/2], limit, took[len(took)-1])
	}
	for _, has := range []int{0, 10, 30, 50} {
		box := testbox.Start(b, eng, engine.Spec{Limits: engine.Limits{Memory: limit}})
		what := "nothing runs"
		if has > 0 {
			what = fmt.Sprintf("it has %d MiB and sleeps", has)
			testbox.Ready(b, box, fmt.Sprintf(`exec python3 -c 'import time; x = b"x" * (%d << 20); print("ready", flush=True); time.sleep(60)'`, has))
		} else {
			testbox.Run(b, box, "true")
		}
		before := used(b)
		const span = 3 * time.Second
		time.Sleep(span)
		fmt.Fprintf(&t, "of %s, %s: %.2f %% of a CPU\n", limit, what, 100*float64(used(b)-before)/float64(span))
	}
	b.Log("\n" + t.String())
}

// used returns the CPU time of this process.
func used(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
