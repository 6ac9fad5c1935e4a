//go:build linux

package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// heap compares a host process that has touched 1 GiB with one that has not: copies of this test binary take turns.
func (w *bench) heap() []row {
	m := w.hosts([]string{"1024", "0", ""}, []string{"0", "0", ""})
	return []row{{"start with 1 GiB of heap in the host process", "with 10 MiB", m[0], m[1], 1.1}}
}

// mounts compares a host with 1,000 more mounts.
func (w *bench) mounts() []row {
	m := w.hosts([]string{"0", "1000", w.dir}, []string{"0", "0", w.dir})
	return []row{{"start with 1,000 more mounts on the host", "without", m[0], m[1], 1.1}}
}

// BenchmarkLimits measures what limits add to a start: those of the zero Spec, by a cgroup or a watchdog, against the
// kernel's own limits alone.
func BenchmarkLimits(b *testing.B) {
	testenv.Need(b, testenv.UserNS)
	w := newBench(b)
	for _, r := range w.limits() {
		b.Log(r)
	}
}

func (w *bench) limits() (rows []row) {
	for _, o := range []struct {
		what    string
		options engine.Options
	}{{"prepared ahead", engine.Options{}}, {"nothing prepared", engine.Options{NoTemplates: true}}} {
		eng, err := engine.Open(o.options)
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = eng.Close() })
		limited, none := w.spec(), w.spec()
		none.Limits = engine.Limits{Memory: engine.UnlimitedBytes, Pids: engine.UnlimitedCount, CPUTime: engine.UnlimitedTime}
		var plans [2]*engine.Plan
		var by string
		for i, s := range []engine.Spec{limited, none} {
			if plans[i], err = eng.Compile(s); err != nil {
				w.Fatal(err)
			}
			for _, l := range plans[i].Limits {
				if l.Name == engine.LimitMemory && l.Enforcers != nil {
					by = l.Enforcers[0].String()
				}
			}
		}
		m := contest(100, func() { w.whole(eng, plans[0]) }, func() { w.whole(eng, plans[1]) })
		rows = append(rows, row{"start with limits by " + by + ", " + o.what, "without", m[0], m[1], 0})
		box := testbox.Start(w, eng, limited)
		free := testbox.Start(w, eng, none)
		m = contest(200, func() { w.run(box) }, func() { w.run(free) })
		rows = append(rows, row{"command in a ready sandbox with limits by " + by, "without", m[0], m[1], 0})
	}
	return rows
}

// hosts runs copies of this binary in turn and returns the median of what each measured.
func (w *bench) hosts(args ...[]string) []time.Duration {
	times := make([][]time.Duration, len(args))
	for range 7 {
		for i, a := range args {
			cmd := testbox.Helper(w, "bench", append(a, w.dir)...)
			if a[1] != "0" || a[2] != "" {
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
				if os.Geteuid() != 0 {
					cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
					cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
					cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
				}
			}
			out, err := cmd.Output()
			if err != nil {
				w.Fatalf("%v: %v", a, err)
			}
			d, err := time.ParseDuration(strings.TrimSpace(string(out)))
			if err != nil {
				w.Fatal(err)
			}
			times[i] = append(times[i], d)
		}
	}
	med := make([]time.Duration, len(args))
	for i := range times {
		med[i] = median(times[i])
	}
	return med
}

// benchHost measures starts in a process with some heap and some mounts, and
// prints the median.
func benchHost() {
	megabytes, mounts, at, dir := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	n, err := strconv.Atoi(megabytes)
	must(err)
	heap := bytes.Repeat([]byte{1}, n<<20)
	n, err = strconv.Atoi(mounts)
	must(err)
	if at != "" {
		must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	}
	for range n {
		must(unix.Mount("/usr/lib", "/mnt", "", unix.MS_BIND, ""))
	}
	eng, err := engine.Open(engine.Options{})
	must(err)
	plan, err := eng.Compile(engine.Spec{FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountBind, Source: dir,
		Target: "/noop", ReadOnly: true}}}})
	must(err)
	var times []time.Duration
	for range 100 {
		begin := time.Now()
		box, err := eng.StartPlan(context.Background(), plan)
		must(err)
		_, err = box.Command("/noop/noop").Run()
		must(err)
		must(box.Close())
		times = append(times, time.Since(begin))
	}
	must(eng.Close())
	fmt.Println(median(times))
	_ = heap[len(heap)/2:]
}

// many keeps n sandboxes alive at once and reports what they cost.
func (w *bench) many(n int) string {
	eng := testbox.Open(w)
	plan, err := eng.Compile(w.spec())
	if err != nil {
		w.Fatal(err)
	}
	fds, threads, free := count(w, "/proc/self/fd"), count(w, "/proc/self/task"), available(w)
	begin := time.Now()
	boxes := make([]*engine.Sandbox, n)
	for i := range boxes {
		if boxes[i], err = eng.StartPlan(w.Context(), plan); err != nil {
			w.Fatal(err)
		}
		w.run(boxes[i])
	}
	rate := float64(n) / time.Since(begin).Seconds()
	perBox := float64(free-available(w)) / float64(n)
	resident := 0.0
	for _, pid := range testbox.Alive(w, "tegmen-init") {
		b, err := os.ReadFile("/proc/" + pid + "/statm")
		if err != nil {
			continue // another test's, ended
		}
		pages, err := strconv.Atoi(strings.Fields(string(b))[1])
		if err != nil {
			w.Fatal(err)
		}
		resident = max(resident, float64(pages*os.Getpagesize())/1024)
	}
	fds, threads = count(w, "/proc/self/fd")-fds, count(w, "/proc/self/task")-threads
	begin = time.Now()
	if err := eng.Close(); err != nil {
		w.Fatal(err)
	}
	return fmt.Sprintf("%d sandboxes alive at once: started at %.0f a second with a command run in each, %.0f KiB of the machine's memory each "+
		"(the kernel's and all else), pid 1 at most %.0f KiB resident, %d more threads and %d more descriptors in the host process; all closed in %.0f ms.",
		n, rate, perBox, resident, threads, fds, time.Since(begin).Seconds()*1e3)
}

func count(w *bench, dir string) int {
	names, err := filepath.Glob(dir + "/*")
	if err != nil {
		w.Fatal(err)
	}
	return len(names)
}

// available is the machine's free memory in KiB.
func available(w *bench) int {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		w.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "MemAvailable:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		w.Fatal(err)
	}
	return n
}
