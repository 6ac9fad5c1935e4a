//go:build linux && (amd64 || arm64)

package sample_test

import (
	"fmt"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/sample"
)

// BenchmarkSample is what a sample costs, far below the limit, near it and above it, of
// processes that share 100 MiB.
func BenchmarkSample(b *testing.B) {
	for _, n := range []int{1, 10, 300} {
		b.Run(fmt.Sprintf("processes=%d", n), func(b *testing.B) {
			box := start(b)
			tk := box.python(fmt.Sprintf(`
m = bytearray(100 << 20)
for i in range(%d):
    if os.fork() == 0: signal.pause()
say("said")`, n-1))
			tk.hears()
			b.Run("far", func(b *testing.B) { measure(b, box.s, 1<<60) })
			// Where a limit is not passed and what is resident is above it.
			b.Run("near", func(b *testing.B) { measure(b, box.s, 600<<20) })
			b.Run("above", func(b *testing.B) { measure(b, box.s, 1) })
		})
	}
}

// BenchmarkTree is what one costs where each process of the host is looked at.
func BenchmarkTree(b *testing.B) {
	tk, pid := onHost(b, `say("said")`)
	tk.hears()
	s, err := sample.OpenTree(pid)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { fail(b, s.Close()) })
	measure(b, s, 1<<60)
}

func measure(b *testing.B, s *sample.Sampler, limit int64) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Sample(limit); err != nil {
			b.Fatal(err)
		}
	}
}
