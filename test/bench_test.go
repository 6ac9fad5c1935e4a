//go:build linux

package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// contest times rivals in turn, so that whatever else the machine does hits
// them alike, and returns the median of each.
func contest(tb testing.TB, rounds int, rivals ...func()) []time.Duration {
	times := make([][]time.Duration, len(rivals))
	for range rounds {
		for i, f := range rivals {
			begin := time.Now()
			f()
			times[i] = append(times[i], time.Since(begin))
		}
	}
	med := make([]time.Duration, len(rivals))
	for i := range times {
		slices.Sort(times[i])
		med[i] = times[i][rounds/2]
	}
	return med
}

func BenchmarkQuick(b *testing.B) {
	dir := b.TempDir()
	os.Chmod(dir, 0o755)
	os.Chmod(filepath.Dir(dir), 0o755)
	noop, err := Noop(dir)
	if err != nil {
		b.Fatal(err)
	}
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer eng.Close()
	spec := engine.Spec{FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountBind, Source: dir, Target: "/b", ReadOnly: true}}}}
	plan, err := eng.Compile(spec)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	discard, _ := os.OpenFile("/dev/null", os.O_WRONLY, 0)
	cold := func() {
		box, err := eng.StartPlan(ctx, plan)
		if err != nil {
			b.Fatal(err)
		}
		c := box.Command("/b/noop")
		c.Stdout, c.Stderr = discard, discard
		if res, err := c.Run(); err != nil || res.Outcome != engine.OK {
			b.Fatal(res, err)
		}
		if err := box.Close(); err != nil {
			b.Fatal(err)
		}
	}
	bwrap := func() {
		args := []string{"--unshare-all", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
			"--symlink", "usr/sbin", "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache",
			"--ro-bind", "/etc/alternatives", "/etc/alternatives", "--ro-bind", "/etc/ssl/certs", "/etc/ssl/certs", "--ro-bind", dir, "/b", "/b/noop"}
		if err := exec.Command("bwrap", args...).Run(); err != nil {
			b.Fatal(err)
		}
	}
	plain := func() {
		pid, err := syscall.ForkExec(noop, []string{"noop"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		if err != nil {
			b.Fatal(err)
		}
		var ws syscall.WaitStatus
		syscall.Wait4(pid, &ws, 0, nil)
	}
	osexec := func() {
		if err := exec.Command(noop).Run(); err != nil {
			b.Fatal(err)
		}
	}
	box, err := eng.StartPlan(ctx, plan)
	if err != nil {
		b.Fatal(err)
	}
	ready := func() {
		c := box.Command("/b/noop")
		c.Stdout, c.Stderr = discard, discard
		if res, err := c.Run(); err != nil || res.Outcome != engine.OK {
			b.Fatal(res, err)
		}
	}
	unshare := func() {
		if err := exec.Command("unshare", "-UrmpinuCf", "--mount-proc", noop).Run(); err != nil {
			b.Fatal(err)
		}
	}
	m := contest(b, 300, cold, bwrap, plain, osexec, ready, unshare)
	b.Logf("cold %v bwrap %v plain %v osexec %v ready %v unshare %v", m[0], m[1], m[2], m[3], m[4], m[5])
	r := func(a, c int) float64 { return float64(m[a]) / float64(m[c]) }
	b.Logf("cold/bwrap %.3f (0.20)  cold/unshare %.3f (0.35) cold/plain %.2f (2.6)  ready/osexec %.2f (1.25)", r(0, 1), r(0, 5), r(0, 2), r(4, 3))
	b.Logf("%+v", box.Timing())
}
