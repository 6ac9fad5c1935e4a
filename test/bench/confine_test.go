//go:build linux

package bench_test

import (
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// confine measures what a filter and a Landlock domain add to a command, as
// parts of a plain exec. The same command without them runs in turn.
func (w *bench) confine() []row {
	with, without := testbox.Open(w), testbox.OpenWithoutLandlock(w)
	spec := func(s engine.Seccomp) engine.Spec {
		out := w.spec()
		out.Seccomp = s
		return out
	}
	bare := testbox.Start(w, without, spec(testbox.NoFilter))
	filtered := testbox.Start(w, without, spec(engine.Seccomp{}))
	strict := testbox.Start(w, without, spec(engine.Seccomp{Profile: "strict"}))
	landlocked := testbox.Start(w, with, spec(testbox.NoFilter))
	m := contest(1500,
		func() { w.run(bare) },
		func() { w.run(filtered) },
		func() { w.run(strict) },
		func() { w.run(landlocked) },
		w.vfork)
	added := func(i int) time.Duration { return max(m[i]-m[0], 0) }
	const plain = "vfork and exec, no sandbox"
	return []row{
		{"added to a command by the default profile", plain, added(1), m[4], 0.12},
		{"added to a command by the strict profile", plain, added(2), m[4], 0.12},
		{"added to a command by Landlock", plain, added(3), m[4], 0.12},
	}
}

// BenchmarkConfine is the part of the table about filters.
func BenchmarkConfine(b *testing.B) {
	for _, r := range newBench(b).confine() {
		b.Log(r)
	}
}
