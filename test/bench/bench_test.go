//go:build linux

package bench_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

var tableFile = flag.String("table", "", "write the table of measurements to this file, in Markdown")

// contest runs rivals in turn, so that whatever else the machine does hits all of them alike, and returns the median
// time of each.
func contest(rounds int, rivals ...func()) []time.Duration {
	times := make([][]time.Duration, len(rivals))
	for i := range rounds + rounds/10 {
		for j, f := range rivals {
			begin := time.Now()
			f()
			if i >= rounds/10 { // the first ones warm up
				times[j] = append(times[j], time.Since(begin))
			}
		}
	}
	med := make([]time.Duration, len(rivals))
	for i := range times {
		med[i] = median(times[i])
	}
	return med
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// row is a line of the table: ours against a peer's, and the target, if any.
type row struct {
	work, peer   string
	ours, theirs time.Duration
	bar          float64
}

func (r row) ratio() float64 { return float64(r.ours) / float64(r.theirs) }

func (r row) String() string {
	verdict := fmt.Sprintf("%.2f met", r.bar)
	switch {
	case r.bar == 0:
		verdict = "" // for the record
	case r.ratio() > r.bar:
		verdict = fmt.Sprintf("%.2f missed", r.bar)
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return fmt.Sprintf("| %s | %s | %.0f | %.0f | %.2f | %s |", r.work, r.peer, us(r.ours), us(r.theirs), r.ratio(),
		verdict)
}

// BenchmarkTable measures against peers and floors in the same run. It does not judge speed: it prints, and people
// read.
func BenchmarkTable(b *testing.B) {
	testenv.Need(b, testenv.UserNS, testenv.Program("bwrap"), testenv.Program("unshare"), testenv.Program("git"))
	w := newBench(b)
	rows := slices.Concat(w.cold(), w.ready(), w.workspace(), w.confine(), w.shell(), w.heap(), w.mounts(), w.limits(), w.code())
	many := w.many(500)
	var t strings.Builder
	fmt.Fprintln(&t, "| work | against | µs | peer µs | ratio | at most |\n|---|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Fprintln(&t, r)
	}
	fmt.Fprintf(&t, "\n%s\n", many)
	b.Logf("\n%s", t.String())
	if *tableFile != "" {
		if err := os.WriteFile(*tableFile, []byte(t.String()), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// bench is the static no-op and what runs it.
type bench struct {
	testing.TB
	dir, noop string
	null      *os.File
}

func newBench(tb testing.TB) *bench {
	dir := testenv.Dir(tb)
	noop, err := testbox.Noop(dir)
	if err != nil {
		tb.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = null.Close() })
	return &bench{tb, dir, noop, null}
}

func (w *bench) spec() engine.Spec {
	return engine.Spec{FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountBind, Source: w.dir, Target: "/noop",
		ReadOnly: true}}}}
}

func (w *bench) run(box *engine.Sandbox) {
	c := box.Command("/noop/noop")
	c.Stdin, c.Stdout, c.Stderr = w.null, w.null, w.null
	if res, err := c.Run(); err != nil || res.Outcome != engine.OutcomeOK {
		w.Fatalf("%+v, %v", res, err)
	}
}

// whole makes a sandbox, runs the no-op in it and ends it.
func (w *bench) whole(eng *engine.Engine, plan *engine.Plan) {
	box, err := eng.StartPlan(w.Context(), plan)
	if err != nil {
		w.Fatal(err)
	}
	w.run(box)
	if err := box.Close(); err != nil {
		w.Fatal(err)
	}
}

func (w *bench) command(name string, args ...string) {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		w.Fatalf("%s: %v: %s", name, err, out)
	}
}

// bwrapArgs returns the arguments that make the view of the zero Spec.
func (w *bench) bwrapArgs() []string {
	args := []string{"--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace", "--ro-bind", "/usr", "/usr", "--ro-bind", w.dir, "/noop"}
	for _, d := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if to, err := os.Readlink(d); err == nil {
			args = append(args, "--symlink", to, d)
		}
	}
	for _, f := range []string{"/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
		"/etc/ca-certificates"} {
		args = append(args, "--ro-bind-try", f, f)
	}
	return args
}

func (w *bench) cold() []row {
	eng := testbox.Open(w)
	plan, err := eng.Compile(w.spec())
	if err != nil {
		w.Fatal(err)
	}
	m := contest(300,
		func() { w.whole(eng, plan) },
		func() { w.command("bwrap", append(w.bwrapArgs(), "/noop/noop")...) },
		func() { w.command("unshare", "-UrmpinuCf", "--mount-proc", w.noop) },
		w.vfork)
	const work = "start, static no-op, end: all namespaces, library call"
	return []row{
		{work, "`bwrap --unshare-all`, same view", m[0], m[1], 0.20},
		{work, "`unshare -UrmpinuCf --mount-proc`", m[0], m[2], 0.35},
		{work, "vfork and exec, no sandbox", m[0], m[3], 2.6},
	}
}

// vfork is the best that the Go runtime can do without a sandbox.
func (w *bench) vfork() {
	pid, err := syscall.ForkExec(w.noop, []string{"noop"},
		&syscall.ProcAttr{Files: []uintptr{w.null.Fd(), w.null.Fd(), w.null.Fd()}})
	if err != nil {
		w.Fatal(err)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		w.Fatal(err)
	}
}

func (w *bench) ready() []row {
	box := testbox.Start(w, testbox.Open(w), w.spec())
	m := contest(1000,
		func() { w.run(box) },
		func() {
			c := exec.Command(w.noop)
			c.Stdin, c.Stdout, c.Stderr = w.null, w.null, w.null
			if err := c.Run(); err != nil {
				w.Fatal(err)
			}
		})
	return []row{{"command in a ready sandbox, static no-op", "os/exec, no sandbox", m[0], m[1], 1.25}}
}

func (w *bench) shell() []row {
	tegmen := filepath.Join(testbox.CommandDir(w), "tegmen")
	empty := filepath.Join(w.dir, "empty")
	if err := os.WriteFile(empty+".go", []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		w.Fatal(err)
	}
	if msg, err := testbox.GoBuild(empty, empty+".go").CombinedOutput(); err != nil {
		w.Fatalf("go build: %v: %s", err, msg)
	}
	m := contest(200,
		func() { w.command(tegmen, "run", "--", "/bin/true") },
		func() { w.command("bwrap", append(w.bwrapArgs(), "/bin/true")...) },
		func() { w.command(empty) })
	return []row{
		{"`tegmen run -- /bin/true` from outside", "`bwrap`, same view", m[0], m[1], 0.90},
		{"(an empty Go program)", "`bwrap`, same view", m[2], m[1], 0.60},
	}
}
