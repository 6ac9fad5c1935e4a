//go:build linux

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// limited has a limit of each kind that every machine can enforce.
var limited = engine.Spec{Limits: engine.Limits{Memory: 64 * engine.MiB, Pids: 32, CPUTime: time.Minute}}

// Sandboxes with limits leave no cgroup, and the host process does not grow.
func TestCgroupsComeAndGo(t *testing.T) {
	testbox.LeavesNoCgroups(t)
	eng := testbox.Open(t)
	rounds := 300
	lived := func(n int) {
		for range n {
			box, err := eng.Start(t.Context(), limited)
			if err != nil {
				t.Fatal(err)
			}
			if err := box.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin := time.Now()
	lived(30)
	if each := time.Since(begin) / 30; each > 50*time.Millisecond && os.Getenv("TEGMEN_TEST_ALL") == "" {
		rounds = 60 // an emulated machine, where that many would take a minute
	}
	lived(rounds/3 - 10)
	// With commands: each has a watchdog or a reader of events.
	for range 10 {
		box := testbox.Start(t, eng, limited)
		if res := testbox.Run(t, box, "true"); res.Outcome != engine.OutcomeOK {
			t.Fatalf("%+v", res)
		}
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
	}
	before, routines := resident(t), runtime.NumGoroutine()
	lived(rounds - rounds/3)
	after := resident(t)
	t.Logf("resident: %s, and after %d more: %s", before, rounds-rounds/3, after)
	if after > before+4*engine.MiB {
		t.Errorf("resident memory of the host process: %s, was %s", after, before)
	}
	if n := runtime.NumGoroutine(); n > routines+10 {
		t.Errorf("%d goroutines, were %d", n, routines)
	}
	if n := len(testbox.Cgroups(t)); n > 8 { // made ahead, or being removed
		t.Errorf("%d cgroups while no sandbox is there", n)
	}
}

// resident is what this process has in memory, without what the collector would give back.
func resident(t *testing.T) engine.Bytes {
	t.Helper()
	debug.FreeOSMemory()
	_, anonymous := testbox.Resident(t)
	return anonymous
}

// Two engines of one process do not disturb each other.
func TestCgroupsOfTwoEngines(t *testing.T) {
	testbox.LeavesNoCgroups(t)
	one, other := testbox.Open(t), testbox.Open(t)
	for range 4 {
		a, b := testbox.Start(t, one, limited), testbox.Start(t, other, limited)
		for _, box := range []*engine.Sandbox{a, b} {
			if res := testbox.Run(t, box, "true"); res.Outcome != engine.OutcomeOK {
				t.Errorf("%+v", res)
			}
		}
	}
}

// If a host process is killed, the next engine removes its cgroups.
func TestCgroupsOfAKilledHost(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Cgroup)
	testbox.LeavesNoCgroups(t)
	mark := testbox.Marker(5200)
	host, out := testbox.StartHelper(t, "limited", mark)
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	testbox.Runs(t, mark)
	if len(testbox.Cgroups(t)) == 0 {
		t.Fatal("it has no cgroups: there is nothing to clear away")
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // killed
	testbox.Gone(t, mark)
	left := testbox.Cgroups(t)
	if len(left) == 0 {
		t.Fatal("it has left no cgroups")
	}
	eng := testbox.Open(t)
	testbox.Run(t, testbox.Start(t, eng, limited), "true")
	if err := eng.Close(); err != nil { // which waits for the clearing
		t.Fatal(err)
	}
	for _, dir := range left {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
}

// limitedHost runs sandboxes with limits until it is killed.
func limitedHost() {
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		panic(err)
	}
	for range 3 {
		box, err := eng.Start(context.Background(), limited)
		if err != nil {
			panic(err)
		}
		cmd := box.Command("sh", "-c", "(setsid sleep "+os.Args[1]+" &); exec sleep "+os.Args[1])
		cmd.Stdout = io.Discard
		if err := cmd.Start(); err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
	select {}
}

// If a cgroup around the sandbox, or the machine, runs out of memory before the sandbox meets its own limit, the
// outcome says so.
func TestOutcomeOfTheHostsMemory(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Cgroup)
	testbox.LeavesNoCgroups(t)
	outer := enclosing(t, 20*engine.MiB)
	// The pages of the interpreter are charged to whoever reads them first: not to the small cgroup.
	testbox.Run(t, testbox.Sandbox(t, engine.Spec{}), "python3", "-c", "import os, time")
	h, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	h.Cgroup = cgroup.FindIn(outer)
	eng := testbox.OpenWith(t, engine.Options{Host: &h})
	neighbour := testbox.Start(t, eng, engine.Spec{Limits: engine.Limits{Memory: 8 * engine.MiB}})
	for _, c := range []struct {
		name, code string
		want       testbox.End
	}{
		{"itself", "eat()", testbox.Ends(engine.OutcomeOOMHost, 137, "memory")},
		{"a child", "if os.fork() == 0: eat()\nos.wait(); os._exit(3)", testbox.Ends(engine.OutcomeOOMHost, 0, "memory")},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := testbox.Start(t, eng, engine.Spec{Limits: engine.Limits{Memory: 256 * engine.MiB}})
			res := testbox.Run(t, box, "python3", "-c", "import os, time"+testbox.Eat+c.code)
			c.want.Check(t, res)
			if len(res.Events) == 1 && !strings.Contains(res.Events[0].Detail, "max 0, oom 0,") {
				t.Errorf("its own limit was met: %+v", res.Events)
			}
		})
	}
	if res := testbox.Run(t, neighbour, "true"); res.Outcome != engine.OutcomeOK {
		t.Errorf("the neighbour: %+v", res)
	}
}

// enclosing makes a cgroup with a memory limit, in which sandboxes get theirs. This process is not in it.
func enclosing(t *testing.T, limit engine.Bytes) (dir string) {
	t.Helper()
	// An engine moves this process out of the way.
	eng := testbox.Open(t)
	testbox.Run(t, testbox.Start(t, eng, limited), "true")
	h, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(h.Cgroup.Dir, fmt.Sprintf("outer-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	for name, value := range map[string]string{"memory.max": fmt.Sprint(int64(limit)), "memory.swap.max": "0"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Even if many sandboxes start at once, the limits of each hold from its first moment on.
func TestBombsAtOnce(t *testing.T) {
	testbox.LeavesNoCgroups(t)
	eng := testbox.Open(t)
	n := 16
	if testbox.ByCgroups(t) {
		n = 3 // the kernel counts, whenever
	}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			box, err := eng.Start(t.Context(), engine.Spec{Limits: engine.Limits{Memory: testbox.SmallMemory}})
			if err != nil {
				t.Error(err)
				return
			}
			cmd := box.Command("python3", "-c", testbox.Eat+"eat()")
			cmd.Wall = 20 * time.Second
			if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeOOM {
				t.Errorf("%+v, %v", res, err)
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// The memory of the host process is not charged to a command, although the command starts in it.
func TestUsageIsNotTheHosts(t *testing.T) {
	testbox.EachLevel(t, testUsageIsNotTheHosts, testbox.Confined...)
}

func testUsageIsNotTheHosts(t *testing.T, l testbox.Level) {
	testenv.NoRace(t)
	heap := bytes.Repeat([]byte{1}, 64<<20)
	defer runtime.KeepAlive(heap)
	box := l.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Memory: 32 * engine.MiB}})
	n := 200
	if l.HasNamespaces() && testbox.ByCgroups(t) {
		n = 10 // the kernel knows whose it is
	}
	for range n {
		if res := testbox.Run(t, box, "true"); res.Outcome != engine.OutcomeOK || len(res.Events) > 0 ||
			res.Usage.Memory > 16*engine.MiB {
			t.Fatalf("%s, %+v, %+v", res.Outcome, res.Usage, res.Events)
		}
	}
}
