//go:build linux

package engine_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A command shares the memory of this process until it calls execve, and the kernel kills every process that shares
// the memory of its victim. If it killed a command that is starting, this test would not fail: it would die.
func TestCgroupStartsWithoutMemory(t *testing.T) {
	testenv.Need(t, testenv.Cgroup)
	ballast := make([]byte, 100*engine.MiB) // makes this process the largest
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	box := testbox.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Memory: 32 * engine.MiB, Wall: time.Minute}})
	if res := testbox.Run(t, box, "sh", "-c", "cat /dev/zero >/tmp/full"); res.Outcome != engine.OutcomeOOM {
		t.Fatalf("filling the memory with a file: %s", res.Outcome)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 8 {
				res, err := box.Command("true").Run()
				if err != nil && !errors.Is(err, unix.ENOMEM) {
					t.Error(err)
				}
				if err == nil && res.Outcome != engine.OutcomeOOM && res.Outcome != engine.OutcomeOK {
					t.Errorf("%s by %v", res.Outcome, res.Signal)
				}
			}
		})
	}
	wg.Wait()
	soon(t, "the sandbox ends", box.Close)
	if ballast[4096] != 1 {
		t.Error("the memory was taken away")
	}
}

// While a start is held up, memory.max is lifted: something else must enforce the limit.
func TestCgroupMemoryWhileAStartIsHeld(t *testing.T) {
	testenv.Need(t, testenv.Cgroup)
	const limit = 64 * engine.MiB
	box := testbox.Sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{Memory: limit, Wall: time.Minute}})
	hog := box.Command("python3", "-c", `
import os, signal
held = []
while True:
    try: os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError: continue
    held.append(bytearray(1 << 20))`)
	if err := hog.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = box.Command("sleep", "1000").Run() }() // ends with the hog
	res, err := hog.Wait()
	if err != nil || res.Outcome != engine.OutcomeOOM {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Usage.Memory > 2*limit {
		t.Errorf("it had %v", res.Usage.Memory)
	}
	t.Logf("of %v it had %v", limit, res.Usage.Memory)
}

// The limits on CPUs, by the CPU time that a busy program gets.
func TestCgroupCPUs(t *testing.T) {
	testenv.Need(t, testenv.Cgroup)
	eng := testbox.Open(t)
	const spin = `
import os, time
b = time.time()
while time.time() - b < 1: pass
print(os.times().user + os.times().system)`
	res := testbox.Run(t, testbox.Start(t, eng, engine.Spec{Limits: engine.Limits{CPUs: 0.25}}), "python3", "-c", spin)
	share := float64(res.Usage.CPU) / float64(res.Usage.Wall)
	if res.Outcome != engine.OutcomeOK || share > 0.35 {
		t.Errorf("%s, and it had %.2f of a CPU", res.Outcome, share)
	}
	if len(res.Events) != 1 || res.Events[0].Limit != "cpus" {
		t.Errorf("events %+v", res.Events)
	}
	for _, limits := range []engine.Limits{{CPUWeight: 7}, {CPUSet: "0"}, {MemoryHigh: 32 * engine.MiB}} {
		if res := testbox.Run(t, testbox.Start(t, eng, engine.Spec{Limits: limits}), "true"); res.Outcome != engine.OutcomeOK {
			t.Errorf("%+v: %+v", limits, res)
		}
	}
}
