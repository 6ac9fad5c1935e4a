package sample

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name string
		s    Sample
		l    Limits
		want time.Duration
	}{
		{"no limits", Sample{Memory: gib, CPU: time.Hour}, Limits{}, Longest},
		{"far below", Sample{Memory: gib}, Limits{Memory: 64 * gib, CPUs: 4}, Longest},
		{"half a GiB on one CPU", Sample{Memory: gib / 2}, Limits{Memory: gib}, 50 * time.Millisecond},
		{"on two", Sample{Memory: gib / 2}, Limits{Memory: gib, CPUs: 2}, 25 * time.Millisecond},
		{"on a hundred", Sample{Memory: gib / 2}, Limits{Memory: gib, CPUs: 100}, 12500 * time.Microsecond},
		{"a byte", Sample{Memory: gib - 1}, Limits{Memory: gib}, Shortest},
		{"above", Sample{Memory: 2 * gib}, Limits{Memory: gib}, Shortest},
		{"the most there is", Sample{Memory: 1 << 62}, Limits{Memory: 1}, Shortest},
		{"the widest", Sample{}, Limits{Memory: 1<<63 - 1, CPUs: 1 << 20}, Longest},
		{"CPU time", Sample{CPU: 900 * time.Millisecond}, Limits{CPU: time.Second, CPUs: 2}, 50 * time.Millisecond},
		{"CPU time, passed", Sample{CPU: 2 * time.Second}, Limits{CPU: time.Second}, Shortest},
		{"processes", Sample{Processes: 500}, Limits{Processes: 1500}, 100 * time.Millisecond},
		{"what costs much is done less often", Sample{Memory: gib, Cost: 5 * time.Millisecond}, Limits{Memory: gib}, 20 * time.Millisecond},
		{"but is done", Sample{Cost: time.Second}, Limits{}, Longest},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.s, c.l); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
