//go:build linux

package attack_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/seccomp"
)

var stressTime = flag.Duration("stress-time", 0, "how long TestStress lets each tool do its worst; 0 is some seconds")

// TestStress runs programs that were made to break kernels in sandboxes, and finds the host, its files and its
// neighbours as they were before.
func TestStress(t *testing.T) {
	testenv.Long(t)
	if os.Getenv("TEGMEN_TEST_ALL") == "" && *stressTime == 0 {
		testenv.Need(t, testenv.Root) // whose guests an ordinary user's are like
	}
	t.Run("stress-ng", func(t *testing.T) {
		testenv.Need(t, testenv.Program("stress-ng"))
		stressNG(newStage(t))
	})
	t.Run("trinity", func(t *testing.T) {
		testenv.Need(t, testenv.Program("trinity"))
		trinity(newStage(t))
	})
}

// classes are the classes of stressors that run.
var classes = []string{"os", "filesystem", "memory", "scheduler", "network", "vm"}

// burners are left out: they use up the memory of the machine, which no limit of a default sandbox bounds, or need
// what no sandbox has.
var burners = map[string]string{
	"bigheap":    "grows until there is no memory, in many processes",
	"brk":        "grows until there is no memory, in many processes",
	"stack":      "grows until there is no memory, in many processes",
	"oom-pipe":   "fills as many pipes as it may have, in the kernel's memory",
	"cyclic":     "measures real-time scheduling, which takes a capability",
	"softlockup": "stalls CPUs by real-time scheduling, which takes a capability",
}

// eager are stressors that try to change the machine or to get around limits.
var eager = strings.Fields(`access af-alg bad-ioctl bind-mount binderfs chroot clock clone cpu-online daemon dev dev-shm efivar enosys
	exec fanotify file-ioctl fork handle hdd io-uring kcmp key kill klog landlock lease loop memhotplug mknod mlockmany mq msg
	netlink-task nice null opcode pci personality pidfd procfs prctl ptrace pty quota ramfs rawsock reboot resources
	rlimit rtc schedpolicy seccomp sem-sysv session set shm-sysv sigq sockabuse sockmany swap sysbadaddr syscall sysinval tmpfs tun
	udp-flood umount unshare userfaultfd usersyscall vfork vm x86syscall xattr zombie`)

var (
	stressList = regexp.MustCompile(`class '[a-z]+' stressors: (.*)`)
	stressWork = regexp.MustCompile(`(?m)^ +(?:bogo-ops: [1-9]|(?:user|system)-time: (?:[1-9]|0\.0?[1-9]))`)
)

// stressNG runs each stressor for a second, in a sandbox each: all of them as often as there is time, or the eager
// ones once.
func stressNG(s *stage) {
	var all []string
	for _, class := range classes {
		m := stressList.FindSubmatch(s.guest(time.Minute, "stress-ng", "--class", class+"?").Stdout)
		if m == nil {
			s.Fatalf("stress-ng does not list class %s", class)
		}
		all = append(all, strings.Fields(string(m[1]))...)
	}
	slices.Sort(all)
	chosen := slices.DeleteFunc(slices.Compact(all), func(name string) bool {
		return burners[name] != "" || *stressTime == 0 && !slices.Contains(eager, name)
	})
	rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })

	var mu sync.Mutex
	worked := make(map[string]bool)
	deadline := time.Now().Add(*stressTime)
	together(6, func(yield func(func()) bool) {
		for round := 0; round == 0 || time.Now().Before(deadline); round++ {
			for _, name := range chosen {
				job := func() {
					res := s.guest(12*time.Second, "sh", "-c",
						"stress-ng --"+name+" 1 --timeout 1 --vm-bytes 64M --oomable --temp-path /tmp --metrics --yaml y >&2; cat y")
					mu.Lock()
					defer mu.Unlock()
					worked[name] = worked[name] || stressWork.Match(res.Stdout)
				}
				if round > 0 && time.Now().After(deadline) || !yield(job) {
					return
				}
			}
		}
	})
	var idle []string // refused, or killed before they could report
	for name, did := range worked {
		if !did {
			idle = append(idle, name)
		}
	}
	slices.Sort(idle)
	s.Logf("%d stressors, of which %d did nothing: %q", len(worked), len(idle), idle)
	if len(worked) < 60 || len(idle) > len(worked)*2/3 {
		s.Errorf("of %d stressors %d did nothing: it has not been tried", len(worked), len(idle))
	}
}

// domains are the socket families for trinity, one for each run. Unix sockets are not among them: trinity crashes when
// it sets them up.
var domains = []string{"INET", "INET6", "NETLINK", "PACKET", "ALG", "KEY", "VSOCK", "XDP", "QIPCRTR", "TIPC"}

var (
	trinityCall = regexp.MustCompile(`(?m)^entrypoint [0-9]+ (\w+) : \[64-bit\]`)
	trinityDone = regexp.MustCompile(`Ran ([0-9]+) syscalls\. Successes: ([0-9]+) +Failures: [0-9]+`)
)

// trinity makes calls with arguments that are almost right.
func trinity(s *stage) {
	const enough = 3000 // calls, however slow the machine is
	budget := max(*stressTime, 8*time.Second)
	tame, victims := tameTrinity(s), []string{"/shown", "/work", "/proc"}
	var mu sync.Mutex
	runs, calls, good := 0, 0, 0
	begin := time.Now()
	together(4, func(yield func(func()) bool) {
		for i := 0; ; i++ {
			mu.Lock()
			over := time.Since(begin) > budget && calls >= enough || time.Since(begin) > budget+time.Minute
			mu.Unlock()
			seed := strconv.Itoa(int(rand.Int32()))
			// When interrupted, it prints how far it got. It waits for ever for descriptors of perf.
			args := []string{"-s", "INT", "5", "trinity", "-q", "-l", "off", "-C", "8", "-N", "1000000", "-s", seed,
				"--disable-fds=perf",
				"-P", domains[i%len(domains)], "-V", victims[i%len(victims)]}
			if i%4 != 3 {
				args = append(args, tame...)
			}
			job := func() {
				res := s.guest(12*time.Second, "timeout", args...)
				mu.Lock()
				defer mu.Unlock()
				runs++
				m := trinityDone.FindSubmatch(res.Stdout)
				if m == nil { // it got itself into a state in which it does not end
					s.Logf("%q: %s, ending in %q", args, res.Outcome, bytes.TrimSpace(tail(res.Stdout, 100)))
					return
				}
				ran, _ := strconv.Atoi(string(m[1])) // digits
				done, _ := strconv.Atoi(string(m[2]))
				calls, good = calls+ran, good+done
			}
			if over || !yield(job) {
				return
			}
		}
	})
	s.Logf("%d runs made %d calls, %d with success", runs, calls, good)
	if calls < enough || good < calls/100 {
		s.Errorf("%d calls were made, %d with success: it has not been tried", calls, good)
	}
}

// tameTrinity leaves out calls that end its processes at once or make them sleep for an age: with these it does not
// get far.
func tameTrinity(s *stage) (args []string) {
	if runtime.GOARCH == "amd64" {
		args = append(args, "-a", "64") // the other way in is closed
	}
	profile, known := seccomp.Lookup("default"), 0
	for _, m := range trinityCall.FindAllSubmatch(s.guest(time.Minute, "trinity",
		slices.Concat([]string{"-q", "-L"}, args)...).Stdout, -1) {
		name := string(m[1])
		action, _, _ := profile.Explain(name)
		if known++; action.Kind == seccomp.KillProcess || strings.HasSuffix(name, "nanosleep") {
			args = append(args, "-x", name)
		}
	}
	if known < 200 {
		s.Errorf("trinity knows %d calls", known)
	}
	return args
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// together runs jobs on a few workers until there are none.
func together(workers int, jobs func(yield func(job func()) bool)) {
	queue := make(chan func())
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for job := range queue {
				job()
			}
		})
	}
	for job := range jobs {
		queue <- job
	}
	close(queue)
	group.Wait()
}
