//go:build linux && (amd64 || arm64)

package sample_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// Who runs a program that its user may not read cannot hide from that user's
// engine. Such a program takes another user to make: root, who then has the rest done
// by one.
func TestHidden(t *testing.T) {
	dir := os.Getenv("TEGMEN_TEST_UNREADABLE")
	if dir == "" {
		testenv.Need(t, testenv.Root)
		askAnother(t)
		return
	}
	b := start(t, engine.Mount{Type: engine.MountBind, Source: dir, Target: "/x", ReadOnly: true})
	tk := b.python(`
pid = os.fork()
if pid == 0: os.execv("/x/sleep", ["sleep", "1000"])
while os.path.exists("/proc/%d" % pid): time.sleep(0.01)
say("hidden")`)
	tk.hears()
	if got := now(t, b.s); got.Hidden != 1 || got.Processes != 2 {
		t.Errorf("%+v, want one that is hidden", got)
	}
}

func askAnother(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // t.TempDir is in a directory that others cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fail(t, os.RemoveAll(dir)) })
	fail(t, os.Chmod(dir, 0o755))
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "sleep")
	fail(t, os.WriteFile(name, program, 0o700))
	fail(t, os.Chmod(name, 0o711))
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestHidden$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TEGMEN_TEST_UNREADABLE="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
