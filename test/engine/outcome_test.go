//go:build linux

package engine_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// The outcome of a command names the memory limit, whichever of its processes meets it.
func TestOutcomeOfMemoryWhoeverTakesIt(t *testing.T) {
	testenv.Long(t)
	testbox.LeavesNoCgroups(t)
	eng := testbox.Open(t)
	for _, c := range []struct{ name, code string }{
		{"a child", `
if os.fork() == 0: eat()
os.wait(); os._exit(0)`},
		{"a grandchild", `
if os.fork() == 0:
    if os.fork() == 0: eat()
    os.wait(); os._exit(0)
os.wait(); os._exit(0)`},
		{"an orphan", `
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        eat()
    os._exit(0)
os.wait(); time.sleep(60); os._exit(0)`},
		{"a thread", `
threading.Thread(target=eat).start()
time.sleep(60); os._exit(0)`},
		{"one of which the first thread has ended", `
threading.Thread(target=eat).start()
import ctypes; ctypes.CDLL(None).pthread_exit(None)`},
		{"one that is told so", `
try: eat()
except MemoryError: pass
os._exit(0)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := testbox.Start(t, eng, engine.Spec{Limits: engine.Limits{Memory: testbox.SmallMemory}})
			// The code may be 0: the parent may have ended before the rest was killed.
			testbox.Ends(engine.OutcomeOOM, 0, "memory").Check(t,
				testbox.Run(t, box, "python3", "-c", "import os, threading, time"+testbox.Eat+c.code))
			select {
			case <-box.Done(): // as at any limit, without Keep
			case <-time.After(10 * time.Second):
				t.Error("the sandbox goes on")
			}
		})
	}
}

// The outcome names the limit on processes, whichever process forks.
func TestOutcomeOfPidsWhoeverForks(t *testing.T) {
	testenv.Long(t)
	eng := testbox.Open(t)
	const bomb = `
import os, sys, threading, time
def bomb():
    try:
        for i in range(100):
            if os.fork() == 0: time.sleep(60)
    except OSError: pass
    time.sleep(.5) # so that one who looks from time to time sees it
`
	for _, c := range []struct {
		name, code string
		want       testbox.End
	}{
		{"itself", `bomb(); os._exit(3)`, testbox.Ends(engine.OutcomePids, 3, "pids")},
		{"a child", `
if os.fork() == 0: bomb(); os._exit(3)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))`, testbox.Ends(engine.OutcomePids, 3, "pids")},
		{"an orphan", `
if os.fork() == 0:
    if os.fork() == 0:
        while os.getppid() != 1: time.sleep(.01) # whose place would be free again
        bomb()
    os._exit(0)
os.wait(); time.sleep(3); os._exit(3)`, testbox.Ends(engine.OutcomePids, 3, "pids")},
		{"one that does well without", `bomb(); os._exit(0)`, testbox.Ends(engine.OutcomeOK, 0, "pids")},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := testbox.Start(t, eng, engine.Spec{Limits: engine.Limits{Pids: 16}})
			c.want.Check(t, testbox.Run(t, box, "python3", "-c", bomb+c.code))
		})
	}
}

// The outcome names the limit on CPU time, even if descendants use it. The kernel kills a process that has used up its
// own.
func TestOutcomeOfCPUWhoeverUsesIt(t *testing.T) {
	testenv.Long(t)
	eng := testbox.Open(t)
	const spin = `
import os, signal, sys, threading, time
def spin():
    while True: pass
`
	for _, c := range []struct {
		name    string
		program []string
		want    testbox.End
	}{
		{"itself", testbox.Python(spin + `spin()`), testbox.Ends(engine.OutcomeCPU, 128+int(unix.SIGXCPU), "cputime")},
		{"a thread", testbox.Python(spin + `
threading.Thread(target=spin, daemon=True).start()
time.sleep(60)`), testbox.Ends(engine.OutcomeCPU, 128+int(unix.SIGXCPU), "cputime")},
		// The child is killed, and its parent goes on. The kernel tells only the parent. The watchdog, which adds up all
		// processes, may have seen the limit reached or not quite, since the kernel counts by ticks.
		{"a child that is waited for", []string{"sh", "-c", `sh -c "while :; do :; done"; [ $? = 152 ] && exit 3`},
			testbox.Ends(engine.OutcomeExit, 3, testbox.AnyEvent)},
		// No process reaches its own limit. The command reaches it only when the watchdog adds them up.
		{"children, and all goes well", testbox.Python(spin + `
for i in range(2):
    if os.fork() == 0:
        while time.process_time() < 1.06: pass
        os._exit(0)
os.wait(); os.wait(); os._exit(0)`), testbox.Ends(engine.OutcomeOK, 0, "cputime")},
		{"orphans", testbox.Python(spin + `
for i in range(3):
    if os.fork() == 0:
        if os.fork() == 0: spin()
        os._exit(0)
    os.wait()
time.sleep(60)`), testbox.Ends(engine.OutcomeCPU, 137, "cputime")},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := testbox.Start(t, eng, engine.Spec{Limits: engine.Limits{CPUTime: 2 * time.Second}})
			c.want.Check(t, testbox.Run(t, box, c.program[0], c.program[1:]...))
		})
	}
}

// A kill from outside is not taken for a limit, whoever sends it.
func TestOutcomeKilledFromOutside(t *testing.T) {
	eng := testbox.Open(t)
	box := testbox.Start(t, eng, engine.Spec{Keep: true,
		Limits: engine.Limits{Memory: 64 * engine.MiB, Pids: 16, CPUTime: time.Minute}})
	for _, c := range []struct {
		name string
		kill func(t *testing.T, pid int)
		want testbox.End
	}{
		{"by a process of the host", func(t *testing.T, pid int) {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Error(err)
			}
		}, testbox.Ends(engine.OutcomeSignal, 137, "")},
		{"by the cgroup", func(t *testing.T, pid int) {
			if !testbox.ByCgroups(t) {
				t.Skip("it has none")
			}
			kill := groupOf(t, pid) + "/cgroup.kill"
			if err := os.WriteFile(kill, []byte("1"), 0); err != nil {
				t.Error(err)
			}
		}, testbox.Ends(engine.OutcomeSignal, 137, "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			mark := testbox.Marker(5100)
			cmd, lines := testbox.Ready(t, box, "echo ready; exec sleep "+mark)
			c.kill(t, testbox.Only(t, mark))
			res, err := cmd.Wait()
			if err != nil {
				t.Fatal(err)
			}
			_ = lines.Close() // read to its end
			c.want.Check(t, res)
		})
	}
	if got := testbox.Output(t, box, "echo alive"); got != "alive" {
		t.Errorf("the sandbox: %q", got)
	}
}

// groupOf returns the directory of a process's cgroup.
func groupOf(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	_, path, found := strings.Cut(strings.TrimSpace("\n"+string(b)), "0::")
	if !found {
		t.Fatalf("no cgroup of version 2: %s", b)
	}
	return "/sys/fs/cgroup" + strings.SplitN(path, "\n", 2)[0]
}
