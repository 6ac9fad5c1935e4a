//go:build linux && (amd64 || arm64)

package sample_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/sample"
)

// watch measures as often as Next says, until enough, for at most a while.
func watch(t *testing.T, s *sample.Sampler, l sample.Limits, while time.Duration, enough func(sample.Sample) bool) (last sample.Sample, samples int, cost time.Duration) {
	t.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); {
		now, err := s.Sample(l.Memory)
		if err != nil {
			t.Fatal(err)
		}
		last, samples, cost = now, samples+1, cost+now.Cost
		if enough(now) {
			return last, samples, cost
		}
		time.Sleep(sample.Next(now, l))
	}
	return last, samples, cost
}

// Who takes memory as fast as can be is seen before much more than the limit is taken.
func TestMemoryIsSeenInTime(t *testing.T) {
	const limit = 256 * mib
	l := sample.Limits{Memory: limit, CPUs: runtime.NumCPU()}
	for _, c := range []struct{ name, code string }{
		{"touched", `m = mmap.mmap(-1, 2 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)`},
		{"files", `
for i in range(8):
    fd = os.memfd_create("x")
    for j in range(256): os.write(fd, bytes(1 << 20))`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t)
			tk := b.python("say('begun')\n" + c.code + "\nsay('all')")
			tk.hears()
			tk.goOn()
			over, n, cost := watch(t, b.s, l, 10*time.Second, func(s sample.Sample) bool { return s.Memory > limit && !s.Partial })
			t.Logf("%d MiB after %d samples, which took %v", over.Memory/mib, n, cost)
			if over.Memory <= limit || over.Memory > 4*limit {
				t.Errorf("%d MiB, with a limit of %d", over.Memory/mib, limit/mib)
			}
		})
	}
}

// A sandbox far from its limits is hardly looked at.
func TestIdleCostsLittle(t *testing.T) {
	b := start(t)
	tk := b.python("say('begun')")
	tk.hears()
	l := sample.Limits{Memory: 1024 * mib, CPU: time.Hour, Processes: 512, CPUs: 2}
	_, n, cost := watch(t, b.s, l, time.Second, func(sample.Sample) bool { return false })
	t.Logf("%d samples took %v of a second", n, cost)
	if n > 60 || cost > 200*time.Millisecond {
		t.Errorf("%d samples took %v of a second", n, cost)
	}
}
