//go:build unix

package testbox

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Patience bounds what must come soon, even on a busy machine.
const Patience = 20 * time.Second

// Marker returns a number of seconds to sleep that nothing else uses: processes with it on their command line are this
// test's.
func Marker(n int) string { return fmt.Sprintf("%d.%04d", 7000+os.Getpid()%1000, n) }

// Until waits for a condition, which must come true.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// Runs waits until a process with the marker runs: without one, a test of its end would show nothing.
func Runs(t testing.TB, marker string) {
	t.Helper()
	Until(t, "something runs that could survive", func() bool { return len(Alive(t, marker)) > 0 })
}

// Gone waits until no process with the marker is left.
func Gone(t testing.TB, marker string) {
	t.Helper()
	var left []string
	deadline := time.Now().Add(Patience)
	for left = Alive(t, marker); len(left) > 0; left = Alive(t, marker) {
		if time.Now().After(deadline) {
			t.Fatalf("still alive: %v", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Only returns the pid of the one process that sleeps for a marker.
func Only(t testing.TB, marker string) int {
	t.Helper()
	Runs(t, "sleep "+marker)
	pids := Alive(t, "sleep "+marker)
	if len(pids) != 1 {
		t.Fatalf("processes %v, want one", pids)
	}
	pid, err := strconv.Atoi(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// LeaveBehind is a table of scripts that start a process which outlives its parent. The marker is an argument of the
// process. Each script prints "ready" when the process runs.
var LeaveBehind = map[string]string{
	"background":    `sleep %[1]s & echo ready`,
	"setsid":        `setsid sleep %[1]s & echo ready`,
	"double fork":   `(setsid sh -c 'sleep %[1]s & exit 0' &) ; echo ready`,
	"ignores TERM":  `(trap '' TERM INT HUP; sleep %[1]s) & echo ready`,
	"closes output": `sleep %[1]s >/dev/null 2>&1 </dev/null & echo ready`,
	"new group":     `set -m; sleep %[1]s & echo ready`,
	// Each process of a chain ends when it has a child.
	"chain": `r='sleep .02; sh -c "$0" "$0" "$1" & exit'; sh -c "$r" "$r" %[1]s & echo ready`,
}
