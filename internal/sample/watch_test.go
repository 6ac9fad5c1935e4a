//go:build linux && (amd64 || arm64)

package sample_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/sample"
)

// watch samples as often as Next says, as a watchdog does, until more than the limit is in
// use.
func watch(t *testing.T, s *sample.Sampler, l sample.Limits) (last sample.Sample, samples int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(sample.Next(last, l)) {
		var err error
		if last, err = s.Sample(l.Memory); err != nil {
			t.Fatal(err)
		}
		samples++
		if last.Memory > l.Memory && !last.Partial {
			break
		}
	}
	return last, samples
}

// A program that allocates as fast as it can is noticed before it has much more than the
// limit.
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
			over, n := watch(t, b.s, l)
			t.Logf("%d MiB after %d samples", over.Memory/mib, n)
			if over.Memory <= limit || over.Memory > 4*limit {
				t.Errorf("%d MiB, with a limit of %d", over.Memory/mib, limit/mib)
			}
		})
	}
}

// A sandbox far from its limits is rarely sampled.
func TestIdleIsRarelySampled(t *testing.T) {
	b := start(t)
	tk := b.python("say('begun')")
	tk.hears()
	l := sample.Limits{Memory: 1024 * mib, CPU: time.Hour, Processes: 512, CPUs: 2}
	got, err := b.s.Sample(l.Memory)
	if err != nil {
		t.Fatal(err)
	}
	if next := sample.Next(got, l); next < 10*sample.Shortest {
		t.Errorf("the next sample in %v, with %+v", next, got)
	}
}
